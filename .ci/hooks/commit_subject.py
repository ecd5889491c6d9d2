#!/usr/bin/env python3
"""Checks a commit message's subject: `area: imperative`, at most 72 characters; then an empty line.

    commit_subject.py FILE        as a commit-msg hook: .pre-commit-config.yaml runs it
    git log -1 --format=%B | commit_subject.py -

Merges, reverts and fixups, which git words itself, pass.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
OF_GIT = re.compile(r"(Merge |Revert |fixup! |squash! |amend! )")
SUBJECT = re.compile(r"[a-z0-9_.\-/]+(, [a-z0-9_.\-/]+)*: \S")
# First words that tell what was done, or what is now, instead of what the commit does. No list knows every verb.
NOT_IMPERATIVE = re.compile(r"(\w+ed|\w+ing|\w+[^s]s)$")
IMPERATIVE = {"bring", "embed", "feed", "need", "seed", "shed", "speed", "string", "bless", "pass", "focus", "bias"}


def complaints(message: str) -> list[str]:
    """What is wrong with a message; nothing if it is well-formed."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if OF_GIT.match(subject):
        return []
    found = []
    if not SUBJECT.match(subject):
        found.append(f"the subject is {subject!r}: expected 'area: imperative', with an area in lower case such as 'tests'")
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters: expected at most {LONGEST}; the why and the figures go below")
    if subject.endswith("."):
        found.append("the subject ends with a full stop: expected none")
    words = subject.partition(": ")[2].split()
    if words and words[0] not in IMPERATIVE and NOT_IMPERATIVE.match(words[0]):
        found.append(f"the subject says {words[0]!r}: expected the imperative, as in 'tests: collect what can run'")
    if len(lines) > 1 and lines[1].strip():
        found.append("the second line is not empty: expected an empty line between subject and body")
    return found


def main() -> int:
    source = sys.argv[1] if len(sys.argv) == 2 else "-"
    found = complaints(sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8"))
    for complaint in found:
        print(f"commit message: {complaint}", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
