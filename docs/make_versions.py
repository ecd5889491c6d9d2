"""Site of all versions: ``python -m docs.make_versions FOLDER``, in a clone with its tags and the extra "docs".

FOLDER has a site in `latest` for the tree as it is, one in `1.2.3` for each tag `v1.2.3`, and the newest of these in `stable`
too. `versions.json`, which the pages read for the choice in their sidebar, lists them; `index.html` leads to `stable`, or to
`latest` as long as there is no tag. A release whose folder is there is not built again.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def releases(tags: Sequence[str]) -> list[str]:
    """Versions of tags, newest first; other tags and candidates of releases are none."""
    found = [tag[1:] for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    return sorted(found, key=lambda version: tuple(map(int, version.split("."))), reverse=True)


def listed(versions: Sequence[str]) -> list[dict[str, str]]:
    """Contents of versions.json: a folder and a title each."""
    stable = [{"folder": "stable", "title": f"stable ({versions[0]})"}] if versions else []
    return [{"folder": "latest", "title": "latest"}, *stable, *({"folder": one, "title": one} for one in versions)]


def sphinx(tree: Path, folder: Path) -> None:
    """A site of the pages of `tree`."""
    with tempfile.TemporaryDirectory() as trees:
        command = [sys.executable, "-m", "sphinx", "-q", "-j", "2", "-d", trees, str(tree / "docs"), str(folder)]
        subprocess.run(command, check=True, cwd=tree)


def make(site: Path, root: Path = ROOT, build: Callable[[Path, Path], None] = sphinx) -> None:
    """Site of all versions of the clone `root`, by `build(tree, folder)`."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout

    versions = releases(git("tag", "--list").split())
    site.mkdir(parents=True, exist_ok=True)
    build(root, site / "latest")
    for version in versions:
        if (site / version).exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            git("worktree", "add", "--detach", str(tree), f"v{version}")
            try:
                build(tree, Path(folder) / "site")
                shutil.move(Path(folder) / "site", site / version)  # whole or not at all
            finally:
                git("worktree", "remove", "--force", str(tree))
    first = "stable" if versions else "latest"
    if versions:
        shutil.rmtree(site / "stable", ignore_errors=True)
        shutil.copytree(site / versions[0], site / "stable")
    (site / "versions.json").write_text(json.dumps(listed(versions), indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={first}/index.html">'
        f'<title>fastlayers</title><a href="{first}/index.html">fastlayers</a>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
