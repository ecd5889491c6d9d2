"""Counters of one worker, which Prometheus' client adds up over all of them; the statistics extension reads them too."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from .served import Served

__all__ = ["Metrics"]

SHARED = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_MODEL = ("model", "version")
PARTS = ("queue", "input", "infer", "output")


class Metrics:
    """Counters by model and version, which are names of the repository alone: no request can invent one."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self._requests = Counter(
            "fastlayers_requests", "Inference requests that were answered.", (*_MODEL, "outcome"), registry=own
        )
        self._seconds = Histogram(
            "fastlayers_request_seconds",
            "Time from a request's head to its answer, of those that succeeded.",
            _MODEL,
            buckets=_SECONDS,
            registry=own,
        )
        self._failed = Counter("fastlayers_failed_seconds", "Time spent on requests that failed.", _MODEL, registry=own)
        self._parts = Counter(
            "fastlayers_part_seconds", "Time of requests that succeeded, by what it went to.", (*_MODEL, "part"), registry=own
        )
        self._rows = Counter("fastlayers_rows", "Rows of requests that succeeded.", _MODEL, registry=own)
        self._runs = Counter("fastlayers_runs", "Runs of a model, by the rows of the batch.", (*_MODEL, "rows"), registry=own)
        self._run_seconds = Counter(
            "fastlayers_run_seconds", "Time of runs, by the rows of the batch.", (*_MODEL, "rows"), registry=own
        )
        self._tokens = Counter("fastlayers_tokens", "Tokens of prompts, and of what followed.", (*_MODEL, "kind"), registry=own)
        self._first = Histogram(
            "fastlayers_first_token_seconds",
            "Time from a request's head to its first token.",
            _MODEL,
            buckets=_SECONDS,
            registry=own,
        )
        self._last = Gauge(
            "fastlayers_last_request_timestamp_seconds",
            "When a model last answered.",
            _MODEL,
            registry=own,
            multiprocess_mode="max",
        )
        self._statuses = Counter("fastlayers_http_responses", "HTTP responses.", ("status",), registry=own)
        self._refused = Counter("fastlayers_refused", "Requests refused before or without a run.", ("reason",), registry=own)
        self._cut = Counter("fastlayers_cut_connections", "Connections that were cut.", ("reason",), registry=own)
        self._gauges = {
            name: Gauge(f"fastlayers_{name}", text, registry=own, multiprocess_mode="livesum")
            for name, text in (
                ("requests_in_flight", "Inference requests that wait or run."),
                ("completions_in_flight", "Completions of prompts that wait or run."),
                ("cache_bytes", "Bytes of what is known of earlier prompts."),
                ("connections", "Open connections."),
                ("sequences", "Open sequences."),
                ("receiving_bytes", "Bytes of bodies that are held."),
            )
        }
        if SHARED not in os.environ:
            ProcessCollector(registry=own)
        self._children: dict[Any, Any] = {}

    def _of(self, metric: Any, *labels: str) -> Any:
        """The metric's child for these labels; `labels` alone costs more than counting."""
        key = (id(metric), labels)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = metric.labels(*labels)
        return found

    # ---- counting ---------------------------------------------------------------------------------------------------

    def ran(self, served: Served, rows: int, seconds: float) -> None:
        """A run is over."""
        labels = served.name, served.version, str(rows)
        self._of(self._runs, *labels).inc()
        self._of(self._run_seconds, *labels).inc(seconds)

    def answered(self, served: Served, rows: int, seconds: float, parts: Iterable[float]) -> None:
        """A request has succeeded; `parts` are the seconds of `PARTS`."""
        labels = served.name, served.version
        self._of(self._requests, *labels, "ok").inc()
        self._of(self._seconds, *labels).observe(seconds)
        self._of(self._rows, *labels).inc(rows)
        self._of(self._last, *labels).set(time.time())
        for name, part in zip(PARTS, parts, strict=True):
            self._of(self._parts, *labels, name).inc(max(part, 0.0))

    def failed(self, served: Served, seconds: float, reason: str) -> None:
        """A request of a model has failed."""
        self._of(self._requests, served.name, served.version, reason).inc()
        self._of(self._failed, served.name, served.version).inc(seconds)

    def grew(self, served: Served, kind: str, tokens: int, first: float | None = None) -> None:
        """There are more tokens: "prompt", or "completion", with the seconds until the first of a request."""
        labels = served.name, served.version
        self._of(self._tokens, *labels, kind).inc(tokens)
        if first is not None:
            self._of(self._first, *labels).observe(first)

    def refused(self, reason: str) -> None:
        """A request was refused; `reason` is one of the server's own words."""
        self._of(self._refused, reason).inc()

    def cut(self, reason: str) -> None:
        """A connection was cut."""
        self._of(self._cut, reason).inc()

    def responded(self, status: int) -> None:
        """A response was sent."""
        self._of(self._statuses, str(status)).inc()

    def gauge(self, name: str, value: float) -> None:
        """Sets a gauge to the current value."""
        self._gauges[name].set(value)

    # ---- telling ----------------------------------------------------------------------------------------------------

    def _all(self) -> CollectorRegistry:
        """A registry of all workers' counters."""
        if SHARED not in os.environ:
            return self._registry
        every = CollectorRegistry()
        MultiProcessCollector(every)
        return every

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        found: bytes = generate_latest(self._all())
        return found

    def statistics(self, models: Iterable[Served]) -> list[dict[str, Any]]:
        """Answer of the statistics extension for these models."""
        found: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
        for metric in self._all().collect():
            for sample in metric.samples:
                labels = sample.labels
                if "model" in labels and "le" not in labels:
                    key = labels["model"], labels["version"]
                    other = labels.get("outcome") or labels.get("part") or labels.get("rows") or ""
                    found.setdefault(key, {})[(sample.name, other)] = sample.value
        return [_statistics(served, found.get((served.name, served.version), {})) for served in models]


def _statistics(served: Served, values: dict[tuple[str, str], float]) -> dict[str, Any]:
    def get(name: str, other: str = "") -> float:
        return values.get((f"fastlayers_{name}", other), 0.0)

    def duration(count: float, seconds: float) -> dict[str, int]:
        return {"count": int(count), "ns": round(seconds * 1e9)}

    good = get("requests_total", "ok")
    bad = sum(value for (name, other), value in values.items() if name == "fastlayers_requests_total" and other != "ok")
    sizes = sorted(int(rows) for name, rows in values if name == "fastlayers_runs_total")
    return {
        "name": served.name,
        "version": served.version,
        "last_inference": int(get("last_request_timestamp_seconds") * 1000),
        "inference_count": int(get("rows_total")),
        "execution_count": int(sum(get("runs_total", str(rows)) for rows in sizes)),
        "inference_stats": {
            "success": duration(good, get("request_seconds_sum")),
            "fail": duration(bad, get("failed_seconds_total")),
            "queue": duration(good, get("part_seconds_total", "queue")),
            "compute_input": duration(good, get("part_seconds_total", "input")),
            "compute_infer": duration(good, get("part_seconds_total", "infer")),
            "compute_output": duration(good, get("part_seconds_total", "output")),
            "cache_hit": duration(0, 0),
            "cache_miss": duration(0, 0),
        },
        "batch_stats": [
            {
                "batch_size": rows,
                "compute_input": duration(0, 0),
                "compute_infer": duration(get("runs_total", str(rows)), get("run_seconds_total", str(rows))),
                "compute_output": duration(0, 0),
            }
            for rows in sizes
        ],
    }
