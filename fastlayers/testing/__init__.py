"""Checks of speed for tests, from certain to noisy. `fastlayers.testing.plugin` gives them to pytest.

1. `plan_of` and `plan_differences`: what would run, step by step. No clock: the same on every run.
2. `instructions`: how many instructions a call takes, counted by valgrind. Nearly the same on every run.
3. `share_of_limit`: the time beside what this machine can do at the same minute.
4. `beside`: the time beside that of another engine, model or function, in turns.
"""

from .beside import Verdict, beside, session
from .instructions import instructions
from .plans import plan_differences, plan_of
from .shares import Share, share_of_limit
from .timing import Times, as_json, machine, take_turns

__all__ = [
    "Share", "Times", "Verdict", "as_json", "beside", "instructions", "machine", "plan_differences", "plan_of", "session",
    "share_of_limit", "take_turns",
]  # fmt: skip
