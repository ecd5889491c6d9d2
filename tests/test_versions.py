"""Site of all versions: which there are, what is built for each, and what docs/check_site.py finds in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "docs").exists():
    pytest.skip("the source distribution has no pages", allow_module_level=True)

from docs.check_site import broken, unversioned  # noqa: E402
from docs.make_versions import listed, make, releases  # noqa: E402

PAGE = '<div class="versions" data-root="./">Version {}</div>'


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    root.mkdir()
    git(root, "init", "--quiet")
    return root


def commit(root: Path, version: str) -> None:
    (root / "page").write_text(version)
    git(root, "add", "page")
    git(root, "commit", "--quiet", "--no-verify", "--message", version)


def build(tree: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(PAGE.format((tree / "page").read_text()))


def said(site: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in site.glob("*/index.html")}


def test_releases_are_tags_of_versions_newest_first() -> None:
    assert releases(["v0.9.0", "v0.10.1", "v0.10.0", "v1.0.0rc1", "nightly", "0.2.0", "v2"]) == ["0.10.1", "0.10.0", "0.9.0"]
    assert [one["folder"] for one in listed(["0.2.0", "0.1.0"])] == ["latest", "stable", "0.2.0", "0.1.0"]
    assert listed(["0.2.0"])[1]["title"] == "stable (0.2.0)" and [one["folder"] for one in listed([])] == ["latest"]


def test_without_a_release_there_is_the_newest_tree_alone(clone: Path, tmp_path: Path) -> None:
    commit(clone, "0.1.0")
    make(tmp_path / "site", clone, build)
    assert said(tmp_path / "site") == {"latest": PAGE.format("0.1.0")}
    assert "url=latest/index.html" in (tmp_path / "site" / "index.html").read_text()
    assert broken(tmp_path / "site") == unversioned(tmp_path / "site") == []


def test_each_release_has_its_own_pages_and_the_newest_is_stable(clone: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for version in ("0.1.0", "0.2.0"):
        commit(clone, version)
        git(clone, "tag", f"v{version}")
    commit(clone, "0.3.0")
    make(site, clone, build)
    wanted = {"latest": "0.3.0", "stable": "0.2.0", "0.2.0": "0.2.0", "0.1.0": "0.1.0"}
    assert said(site) == {folder: PAGE.format(version) for folder, version in wanted.items()}
    assert {one["folder"] for one in json.loads((site / "versions.json").read_text())} == set(wanted)
    assert "url=stable/index.html" in (site / "index.html").read_text()
    assert len(git(clone, "worktree", "list").splitlines()) == 1  # none is left behind
    git(clone, "tag", "v0.3.0")
    built = []
    make(site, clone, lambda tree, folder: (built.append(folder.name), build(tree, folder))[1])
    assert said(site)["stable"] == said(site)["0.3.0"] == PAGE.format("0.3.0") and len(built) == 2  # latest, and the new one
    assert broken(site) == unversioned(site) == []


def test_a_site_with_a_page_or_a_folder_missing_is_found(clone: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    commit(clone, "0.1.0")
    git(clone, "tag", "v0.1.0")
    make(site, clone, build)
    (site / "latest" / "other.html").write_text("<p>")
    (site / "stable" / "index.html").unlink()
    assert unversioned(site) == ["versions.json: stable", "latest/other.html: tells no version"]
    assert broken(site) == ["index.html: stable/index.html"]
    alone = subprocess.run([sys.executable, str(ROOT / "docs" / "check_site.py"), str(site)], capture_output=True, text=True)
    assert alone.returncode == 1 and "tells no version" in alone.stdout
