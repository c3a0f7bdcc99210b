"""The server: addresses for programs, pages for people."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from deltarank import __version__
from deltarank.core.threads import n_threads
from deltarank.serving.access import Access, Guard
from deltarank.serving.annif import Vocabulary, project, suggest
from deltarank.serving.docs_page import to_docs
from deltarank.serving.fast_lane import FastLane
from deltarank.serving.items import ItemError
from deltarank.serving.limits import BodyLimit
from deltarank.serving.metrics import MEDIA_TYPE, Metrics
from deltarank.serving.monitoring import POLICY, Monitor
from deltarank.serving.page import to_page
from deltarank.serving.request_log import RequestLog
from deltarank.serving.service import Service

# Pages need nothing from elsewhere, and their policy says so to the browser.
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_FORM_POLICY = f"{_PAGE_POLICY}; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
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
    sets: Any = Field(
        None,
        description="f1 or likely: choose a set of labels for each item by the probabilities.",
    )


class Ranking(BaseModel):
    """Labels, best first, and their scores; probabilities where the model has them."""

    labels: list[Any]
    scores: list[float]
    probabilities: list[float] | None = None
    set: list[Any] | None = None
    why: dict[str, Any] | None = None


class Rankings(BaseModel):
    """One ranking per item, in their order."""

    rankings: list[Ranking]


def create_app(
    service: Service,
    access: Access | None = None,
    log: RequestLog | None = None,
    vocabulary: Vocabulary | None = None,
) -> FastAPI:
    """Return the ASGI application that serves a model.

    Parameters
    ----------
    service : Service
    access : Access or None
        Whom it answers; everybody by default.
    log : RequestLog or None
        Where a line is written for each request.
    vocabulary : Vocabulary or None
        Addresses and names of labels, for Annif.

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
        docs_url=None,  # it would load its script from elsewhere
        redoc_url=None,
    )
    about = service.about()
    metrics = Metrics({"version": __version__, "ranker": about["ranker"]})
    pool = ThreadPoolExecutor(n_threads(), thread_name_prefix="rank")
    _add_ranking(app, service, metrics, pool)
    _add_annif(app, service, vocabulary or Vocabulary(), pool)
    _add_description(app, about, metrics)
    _add_pages(app, to_page(about, service.examples, service.truths))
    app.add_exception_handler(RequestValidationError, _refuse)
    app.add_exception_handler(Exception, _fail)
    # What is added last sees a request first.
    app.add_middleware(FastLane, service=service, metrics=metrics, is_open=service.is_quick())
    app.add_middleware(BodyLimit, limits=service.limits)
    app.add_middleware(Guard, access=access or Access())
    paths = frozenset(str(getattr(route, "path", "")) for route in app.routes)
    most = service.limits.requests
    app.add_middleware(Monitor, metrics=metrics, log=log, paths=paths, most=most)
    return app


def _add_annif(
    app: FastAPI, service: Service, vocabulary: Vocabulary, pool: ThreadPoolExecutor
) -> None:
    about, n_unknown = project(service), vocabulary.n_unknown(service.model.classes.tolist())

    @app.get("/annif")
    async def show_project() -> dict[str, Any]:
        """Describe the model as a project of Annif."""
        return about

    @app.post("/annif/suggest")
    async def suggest_subjects(request: Request) -> dict[str, Any]:
        """Suggest subjects for a text: a form with text and limit, as Annif sends it."""
        work = partial(suggest, service, vocabulary, n_unknown, await request.body())
        answer: dict[str, Any] = await _within(service.limits.seconds, pool, work)
        return answer


def _add_ranking(
    app: FastAPI, service: Service, metrics: Metrics, pool: ThreadPoolExecutor
) -> None:
    @app.post("/rank", response_model=Rankings)
    async def rank(request: Rank) -> Response:
        """Rank the labels of an item, or of several."""
        if (request.item is None) == (request.items is None):
            raise HTTPException(422, "give either item or items")
        items = [request.item] if request.items is None else request.items
        work = partial(service.rank_to_json, items, request.top, request.explain, request.sets)
        answer = await _within(service.limits.seconds, pool, work)
        metrics.n_items += len(items)
        return Response(answer, media_type="application/json")


def _add_description(app: FastAPI, about: dict[str, Any], metrics: Metrics) -> None:
    @app.head("/health", include_in_schema=False)
    @app.get("/health")
    async def health() -> dict[str, str]:
        """Tell that the server is there."""
        return {"status": "ok"}

    @app.get("/model")
    async def model() -> dict[str, Any]:
        """Describe the model: its labels, and the columns or features it takes."""
        return about

    @app.get("/metrics", response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        """Count requests and measure their times, in the text format of Prometheus."""
        return Response(metrics.to_text(), media_type=MEDIA_TYPE)


def _add_pages(app: FastAPI, page: str) -> None:
    docs = to_docs(app.openapi())

    @app.get("/", include_in_schema=False)
    async def show_page() -> HTMLResponse:
        return HTMLResponse(page, headers={"content-security-policy": _FORM_POLICY})

    @app.get("/docs", include_in_schema=False)
    async def show_docs() -> HTMLResponse:
        return HTMLResponse(docs, headers={"content-security-policy": _PAGE_POLICY})


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


async def _fail(request: Request, error: Exception) -> JSONResponse:
    """Answer when the server itself is at fault; the error goes on to the log of the server."""
    # Made outside of all that was added to the application, hence the headers.
    return JSONResponse({"detail": "the server failed; see its log"}, 500, POLICY)
