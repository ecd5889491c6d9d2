"""Makes the tag of a release: `python -m tests.packaging.release`, of which a push starts .github/workflows/wheels.yml.

The version is the package's own. Its section of the changelog must be the first one, with a date;
the tree must be clean, on main.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from fastlayers import __version__

CHANGELOG = Path(__file__).parent.parent.parent / "CHANGELOG.md"


def newest(changelog: str) -> tuple[str, str]:
    """Version and date (or an empty text) of the first section; what is not released yet names its version below."""
    heading = re.search(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?$", changelog, re.MULTILINE)
    assert heading, "CHANGELOG.md has no section"
    version, date = heading[1], heading[2] or ""
    if version == "Unreleased":
        named = re.search(r"(\d+\.\d+\.\d+)", changelog[heading.end() :])
        assert named, "CHANGELOG.md does not say which version comes next"
        version, date = named[1], ""
    return version, date


def problems(version: str, changelog: str, branch: str, changed: str) -> list[str]:
    """All that keeps `version` from being tagged."""
    found, date = newest(changelog)
    return [
        text
        for text, wrong in (
            (f"CHANGELOG.md's first version is {found}, the package's is {version}", found != version),
            (f'CHANGELOG.md has no date: its first section should begin "## [{version}] - YYYY-MM-DD"', not date),
            (f"the branch is {branch}, not main", branch != "main"),
            (f"there are changes that are not committed:\n{changed}", bool(changed)),
        )
        if wrong
    ]


def git(*arguments: str) -> str:
    """What git says to `arguments`."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    wrong = problems(__version__, CHANGELOG.read_text(), git("branch", "--show-current"), git("status", "--porcelain"))
    if wrong:
        sys.exit("\n".join(wrong))
    git("tag", "--annotate", f"v{__version__}", "--message", f"fastlayers {__version__}")
    print(f"tagged v{__version__}; it is published by: git push origin v{__version__}")
