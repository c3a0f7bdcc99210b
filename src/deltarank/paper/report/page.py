"""One self-contained HTML page: text, tables, figures as inline SVG; no network, light and dark."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from deltarank.paper.report.tables import cell

Row = dict[str, Any]


class Section(NamedTuple):
    """A part of the page: a heading, paragraphs, tables (title, rows, note) and figures (SVG)."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[tuple[str, list[Row], str]] = ()
    figures: Sequence[tuple[str, bytes]] = ()


STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #d8d8d8; --soft: #666; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --paper: #16181c; --line: #3a3d44; --soft: #9aa0aa; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 64rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.5rem; font-size: 1.3rem; }
p { max-width: 44rem; } .note { color: var(--soft); font-size: .9rem; }
figure { margin: 1rem 0; background: #fff; border-radius: 6px; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 40rem; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
td.number { text-align: right; }
code { font-size: .9em; }
@media print { body { max-width: none; } figure, table { break-inside: avoid; } }
"""


def to_page(title: str, sections: Sequence[Section]) -> str:
    """Write the page.

    Examples
    --------
    >>> page = to_page("Results", [Section("One", ["Text."], [("T", [{"a": 1}], "")])])
    >>> "<h2>One</h2>" in page and "http" not in page
    True
    """
    parts = [f"<h1>{escape(title)}</h1>"]
    for section in sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [f"<p>{escape(text)}</p>" for text in section.paragraphs]
        parts += [_figure(name, svg) for name, svg in section.figures]
        parts += [_table(*table) for table in section.tables]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _figure(name: str, svg: bytes) -> str:
    drawing = svg.decode()
    drawing = drawing[drawing.index("<svg") :]
    # Ids are unique in one drawing, not in a page of several.
    drawing = drawing.replace('id="', f'id="{name}-').replace('"#', f'"#{name}-')
    drawing = drawing.replace("url(#", f"url(#{name}-")
    return f'<figure role="img" aria-label="{escape(name)}">{drawing}</figure>'


def _table(title: str, rows: list[Row], note: str) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    lines = []
    for row in rows:
        cells = "".join(
            f'<td class="number">{escape(cell(value))}</td>'
            if isinstance(value, int | float) and not isinstance(value, bool)
            else f"<td>{escape(cell(value))}</td>"
            for value in row.values()
        )
        lines.append(f"<tr>{cells}</tr>")
    table = (
        f'<div class="scroll"><table><caption>{escape(title)}</caption><thead><tr>{head}</tr>'
        f"</thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
    return table + (f'<p class="note">{escape(note)}</p>' if note else "")
