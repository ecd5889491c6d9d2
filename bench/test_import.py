"""Time of `import numpy, fastlayers` in a fresh process; the share of fastlayers is printed next to it."""

from __future__ import annotations

from typing import Any

from bench.imports import once


def test_import(benchmark: Any) -> None:
    runs: list[dict[str, Any]] = []
    benchmark.pedantic(lambda: runs.append(once()), rounds=5, warmup_rounds=1)
    benchmark.extra_info["fastlayers after numpy, ms"] = round(1e3 * min(run["seconds"] for run in runs), 2)
    assert all(run["threads"] == 0 for run in runs)
