"""The page at ``/docs``: the interface as HTML, from its description as OpenAPI."""

from collections.abc import Iterator
from html import escape
from typing import Any

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 52rem;
  font: 16px/1.5 system-ui, sans-serif; }}
h2 {{ margin-top: 2rem; font-size: 1.1rem; }}
table {{ border-collapse: collapse; }}
td {{ padding: .2rem .8rem .2rem 0; vertical-align: top; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{description} As OpenAPI, for programs: <a href="openapi.json">openapi.json</a>.</p>
"""


def to_docs(schema: dict[str, Any]) -> str:
    """Return the page for a description as OpenAPI, self-contained.

    Examples
    --------
    >>> operation = {"description": "Tell the time.", "responses": {}}
    >>> schema = {"info": {"title": "Clock", "version": "1", "description": ""},
    ...           "paths": {"/now": {"get": operation}}}
    >>> [line for line in to_docs(schema).splitlines() if "<h2>" in line]
    ['<h2><code>GET /now</code></h2>']
    """
    info = schema["info"]
    title = escape(f"{info['title']} {info['version']}")
    parts = [_HEAD.format(title=title, description=escape(info["description"]))]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            parts += _operation(f"{method.upper()} {path}", operation, schema)
    return "".join(parts) + "</body>\n</html>\n"


def _operation(name: str, operation: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(name)}</code></h2>\n<p>{escape(operation['description'])}</p>\n"
    if "requestBody" in operation:
        yield from _fields("Takes", operation["requestBody"], schema)
    if "200" in operation["responses"]:
        yield from _fields("Returns", operation["responses"]["200"], schema)


def _fields(word: str, message: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the fields of a JSON object, and of those it holds lists of."""
    described = message.get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" not in described:
        return
    model = schema["components"]["schemas"][described["$ref"].rpartition("/")[2]]
    yield f"<p>{word} a JSON object. {escape(model.get('description', ''))}</p>\n<table>\n"
    for name, field in model["properties"].items():
        text = field.get("description", "")
        if "$ref" in (inner := field.get("items", {})):
            held = schema["components"]["schemas"][inner["$ref"].rpartition("/")[2]]
            text = f"A list of objects with {', '.join(held['properties'])}. {held['description']}"
        yield f"<tr><td><code>{escape(name)}</code></td><td>{escape(text)}</td></tr>\n"
    yield "</table>\n"
