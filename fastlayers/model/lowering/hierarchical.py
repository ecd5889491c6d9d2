"""Hierarchical softmax."""

from __future__ import annotations

from ._base import LOWER, same

LOWER["hierarchical_log_prob"] = same("TreeLogProb")
LOWER["hierarchical_log_softmax"] = same("TreeDistribution")
