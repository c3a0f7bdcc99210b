"""The server: three addresses for programs, one page for people."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from deltarank import __version__
from deltarank.core.threads import n_threads
from deltarank.serving.items import ItemError
from deltarank.serving.limits import BodyLimit
from deltarank.serving.page import to_page
from deltarank.serving.service import Service

# The page needs nothing from elsewhere, and its policy says so to the browser.
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
Top = Annotated[StrictInt, Field(ge=1, description="How many labels per item, at most.")]


class Rank(BaseModel):
    """Items to rank labels for: give `item` or `items`."""

    model_config = ConfigDict(extra="forbid")

    item: Any = Field(
        None,
        description="Columns by name where the model has an encoder (text, categories, numbers, "
        "null for missing); else a list of numbers, or features by name or number.",
    )
    items: list[Any] | None = Field(None, description="Several of them.")
    top: Top = 5
    explain: Any = Field(
        False,
        description="true for the reasons that put the first label above the second, or a list of "
        "two labels for theirs.",
    )


class Ranking(BaseModel):
    """Labels, best first, and their scores."""

    labels: list[Any]
    scores: list[float]
    why: dict[str, Any] | None = None


class Rankings(BaseModel):
    """One ranking per item, in their order."""

    rankings: list[Ranking]


def create_app(service: Service) -> FastAPI:
    """Return the ASGI application that serves a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deltarank import LogisticRanker, save
    >>> from deltarank.serving.service import Limits
    >>> path = Path(tempfile.mkdtemp(), "weather.delta")
    >>> save(LogisticRanker().fit([[30.0], [2.0]], [{"beach"}, {"museum"}]), path)
    >>> app = create_app(Service.load(path, Limits()))
    >>> sorted({route.path for route in app.routes} & {"/rank", "/model", "/health"})
    ['/health', '/model', '/rank']
    """
    app = FastAPI(
        title="DeltaRank",
        version=__version__,
        description="Rank the labels of an item, most likely relevant first.",
        redoc_url=None,
    )
    app.add_middleware(BodyLimit, limits=service.limits)
    app.add_exception_handler(RequestValidationError, _refuse)
    pool = ThreadPoolExecutor(n_threads(), thread_name_prefix="rank")
    about = service.about()
    page = to_page(about, service.examples)

    @app.post("/rank", response_model=Rankings)
    async def rank(request: Rank) -> Response:
        """Rank the labels of an item, or of several."""
        if (request.item is None) == (request.items is None):
            raise HTTPException(422, "give either item or items")
        items = [request.item] if request.items is None else request.items
        work = partial(service.rank_to_json, items, request.top, request.explain)
        answer = await _within(service.limits.seconds, pool, work)
        return Response(answer, media_type="application/json")

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Tell that the server is there."""
        return {"status": "ok"}

    @app.get("/model")
    async def model() -> dict[str, Any]:
        """Describe the model: its labels, and the columns or features it takes."""
        return about

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def show_page() -> HTMLResponse:
        return HTMLResponse(page, headers=PAGE_HEADERS)

    return app


async def _within(seconds: float, pool: ThreadPoolExecutor, work: Any) -> Any:
    """Do the work in a thread, so that others are answered meanwhile."""
    running = asyncio.get_running_loop().run_in_executor(pool, work)
    try:
        return await asyncio.wait_for(running, seconds)
    except ItemError as error:
        raise HTTPException(422, str(error)) from None
    except TimeoutError:
        problem = f"ranking took longer than {seconds:g} s; send fewer items at a time"
        raise HTTPException(503, problem) from None


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """Say in one line what is wrong with a request of the wrong form."""
    assert isinstance(error, RequestValidationError)
    problems = []
    for detail in error.errors():
        if detail["type"] == "json_invalid":
            problems.append(f"the body is not JSON at character {detail['loc'][-1]}")
            continue
        where = ".".join(map(str, detail["loc"][1:])) or "the body"
        problems.append(f"{where}: {detail['msg'][0].lower()}{detail['msg'][1:]}")
    return JSONResponse({"detail": "; ".join(dict.fromkeys(problems))}, 422)
