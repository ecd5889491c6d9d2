"""Stopwatch of the benchmarks: that of `fastlayers.testing`, and the JSON in which its figures are stored."""

from __future__ import annotations

from fastlayers.testing.timing import Times, as_json, take_turns

__all__ = ["Times", "as_json", "take_turns"]
