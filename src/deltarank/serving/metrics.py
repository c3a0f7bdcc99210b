"""Counts and times of requests, in the text format of Prometheus."""

from collections import Counter

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts and times of requests, for Prometheus.

    Examples
    --------
    >>> metrics = Metrics({"version": "1.0"})
    >>> metrics.add("GET", "/health", 200, 0.002)
    >>> print(metrics.to_text().splitlines()[-2])
    deltarank_http_request_duration_seconds_sum{path="/health"} 0.002
    """

    def __init__(self, info: dict[str, str]) -> None:
        self._info = info
        self.n_items = self.n_running = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def add(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        self._requests[method, path, status] += 1
        self._seconds[path] += seconds  # type: ignore[assignment]
        for bound in BUCKETS:
            self._within[path, bound] += seconds <= bound

    def to_text(self) -> str:
        """Return all of them in Prometheus' text format, version 0.0.4."""
        name, took = "deltarank_http_requests", "deltarank_http_request_duration_seconds"
        described = ",".join(f'{key}="{value}"' for key, value in self._info.items())
        lines = [
            *_family("deltarank_info", "gauge", "The model that is served."),
            f"deltarank_info{{{described}}} 1",
            *_family("deltarank_items_ranked_total", "counter", "Items ranked."),
            f"deltarank_items_ranked_total {self.n_items}",
            *_family(f"{name}_in_progress", "gauge", "Requests that are being answered."),
            f"{name}_in_progress {self.n_running}",
            *_family(f"{name}_total", "counter", "Requests answered."),
            *(
                f'{name}_total{{method="{method}",path="{path}",status="{status}"}} {count}'
                for (method, path, status), count in sorted(self._requests.items())
            ),
            *_family(took, "histogram", "Seconds from a request's head to the end of its answer."),
        ]
        for path, seconds in sorted(self._seconds.items()):
            count = sum(n for key, n in self._requests.items() if key[1] == path)
            lines += [
                f'{took}_bucket{{path="{path}",le="{bound}"}} {self._within[path, bound]}'
                for bound in BUCKETS
            ]
            lines += [
                f'{took}_bucket{{path="{path}",le="+Inf"}} {count}',
                f'{took}_sum{{path="{path}"}} {seconds}',
                f'{took}_count{{path="{path}"}} {count}',
            ]
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"
