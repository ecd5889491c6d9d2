"""Folder of the hook for PyInstaller: the entry point ``pyinstaller40`` of pyproject.toml names `hook_dirs`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["hook_dirs"]


def hook_dirs() -> list[str]:
    """Folders with hooks."""
    return [str(Path(__file__).parent)]
