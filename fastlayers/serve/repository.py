"""The models that may be served: found in a file or folder, loaded, unloaded. A name from a request is only ever looked up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .._locks import Lock
from ..errors import ArgumentError, Error, FormatError
from . import logs
from .config import Config, read
from .failures import Refused
from .served import Served
from .settings import Settings

__all__ = ["Repository"]

SUFFIXES = (".onnx", ".tflite", ".keras", ".h5", ".hdf5", ".safetensors", ".gguf")
CHECKPOINTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
MOST = 10_000  # entries of a folder that are looked at
READY, UNAVAILABLE = "READY", "UNAVAILABLE"


class _Source(NamedTuple):
    """Location of a version of a model, or the reason why it cannot be served."""

    path: Path | None
    config: Path
    why: str = ""


class Repository:
    """Models on disk and those loaded. Changes happen one at a time, in any thread; readers need no lock."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._root = Path(os.path.realpath(settings.source))
        self._lock = Lock()
        self._loaded: dict[str, dict[str, Served]] = {}
        self._why: dict[tuple[str, str], str] = {}
        if not self._root.exists():
            raise FileNotFoundError(2, os.strerror(2), settings.source)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def find(self, name: str, version: str | None) -> Served:
        """A loaded model; without a version the one of the highest number."""
        versions = self._loaded.get(name)
        found = None if not versions else versions.get(version) if version is not None else versions[_latest(versions)]
        if found is None:
            known = "" if not versions else f": its versions are {sorted(versions, key=int)}"
            what = f"model {name!r:.100}" if version is None else f"version {version!r:.50} of model {name!r:.100}"
            raise Refused(404, f"{what} is not loaded{known}", "unknown model")
        return found

    def versions(self, name: str) -> list[str]:
        """Loaded versions of a model."""
        return sorted(self._loaded.get(name, ()), key=int)

    def every(self) -> list[Served]:
        """All that are loaded, by name and version."""
        return [served[v] for _, served in sorted(self._loaded.items()) for v in sorted(served, key=int)]

    def ready(self) -> bool:
        """Whether all that should be loaded is."""
        return not self._why

    def index(self) -> list[dict[str, str]]:
        """Every version of every model on disk, and whether it is loaded."""
        found: dict[tuple[str, str], tuple[str, str]] = {
            (name, version): (UNAVAILABLE, source.why or "unloaded")
            for name, versions in self._scan().items()
            for version, source in versions.items()
        }
        found |= {key: (UNAVAILABLE, why) for key, why in self._why.items()}
        found |= {(served.name, served.version): (READY, "") for served in self.every()}
        return [
            {"name": name, "version": version, "state": state, "reason": why}
            for (name, version), (state, why) in sorted(found.items())
        ]

    # ---- changing ---------------------------------------------------------------------------------------------------

    def load_all(self) -> None:
        """Loads what is there. What cannot be loaded is logged; if it was the one that was asked for, its error is raised."""
        found = self._scan()
        if not found:
            raise FormatError(
                f"serve: {self._settings.source}: no model is there: expected files ending in {', '.join(SUFFIXES)}"
            )
        for name in sorted(found):
            with suppress(Refused):  # logged, and in the index
                self.load(name)
        if len(found) == 1 and self._why and not self._loaded:
            raise FormatError(f"serve: {'; '.join(self._why.values())}")

    def load(self, name: str) -> None:
        """Loads all versions of a model, again if they are loaded; requests that run keep what they have."""
        with self._lock:
            sources = self._scan().get(name)
            if sources is None:
                raise Refused(404, f"there is no model {name!r:.100}", "unknown model")
            loaded: dict[str, Served] = {}
            why: dict[str, str] = {}
            for version, source in sources.items():
                try:
                    loaded[version] = self._load(name, version, source)
                except (Error, OSError) as error:  # noqa: PERF203 - one that fails is no reason to leave the others out
                    why[version] = " ".join(str(error).split())[:500]
                    logs.event("model failed", level="error", model=name, version=version, why=why[version])
            if loaded:
                self._replace(name, loaded)
            for key in [key for key in self._why if key[0] == name]:
                del self._why[key]
            self._why |= {(name, version): text for version, text in why.items()}
            if not loaded:
                raise Refused(400, f"model {name!r}: {'; '.join(why.values())}", "load failed")
        for version in loaded:
            logs.event("model loaded", model=name, version=version)

    def unload(self, name: str) -> None:
        """Forgets a model; requests that run are answered, and its memory is free after the last."""
        with self._lock:
            known = name in self._loaded or name in self._scan()
            if not known:
                raise Refused(404, f"there is no model {name!r:.100}", "unknown model")
            self._replace(name, {})
            for key in [key for key in self._why if key[0] == name]:
                del self._why[key]
        logs.event("model unloaded", model=name)

    def _replace(self, name: str, versions: dict[str, Served]) -> None:
        """In one step for those who read."""
        old = self._loaded.get(name, {})
        others = {key: value for key, value in self._loaded.items() if key != name}
        self._loaded = {**others, name: versions} if versions else others
        for served in old.values():
            served.closed = True

    def _load(self, name: str, version: str, source: _Source) -> Served:
        if source.path is None:
            raise FormatError(f"serve: {source.why}")
        config = Config()
        if self._inside(source.config):
            config = read(source.config)
        given = self._settings
        storage = {"precision": given.precision, "weights": given.weights}
        most = given.batch, given.batch_delay, given.cache, given.completions
        return Served(name, version, source.path, config, *most, storage)

    # ---- looking ----------------------------------------------------------------------------------------------------

    def _inside(self, path: Path) -> bool:
        """Whether a path, its links followed, is of the folder."""
        top = self._root.parent if self._root.is_file() else self._root
        real = Path(os.path.realpath(path))
        return real == top or top in real.parents

    def _scan(self) -> dict[str, dict[str, _Source]]:
        """Every version of every model."""
        root, given = self._root, self._settings.name
        if root.is_file():
            name = given or root.stem
            return {name: {"1": _Source(root, root.with_suffix(".toml"))}}
        if _is_checkpoint(root):  # named by who starts the server: its links may lead anywhere, as in the caches of publishers
            return {given or root.name: {"1": _Source(root, root / "config.toml")}}
        if given is not None:
            versions = self._versions(root)
            return {given: versions} if versions else {}
        found: dict[str, dict[str, _Source]] = {}
        for entry in _entries(root):
            name = entry.stem if entry.suffix in SUFFIXES else entry.name
            if entry.suffix in SUFFIXES and entry.is_file():
                versions = {"1": self._source(entry, entry.with_suffix(".toml"))}
            elif entry.is_dir():
                # A link to elsewhere is shown, and not looked into.
                versions = self._versions(entry) if self._inside(entry) else {"1": self._source(entry, entry)}
            else:
                continue
            if name in found:
                versions = {"1": _Source(None, entry, f"{name}: two files or folders are of this name")}
            if versions:
                found[name] = versions
        return found

    def _versions(self, folder: Path) -> dict[str, _Source]:
        """A model's folder: folders named by numbers with a file each, or one file or a checkpoint, which is version 1."""
        if _is_checkpoint(folder):
            return {"1": self._file(folder, folder / "config.toml")}
        entries = _entries(folder)
        config = folder / "config.toml"
        found = {
            str(int(entry.name)): self._file(entry, config)
            for entry in entries
            if entry.name.isascii() and entry.name.isdigit() and len(entry.name) < 19 and entry.is_dir()
        }
        if not found and any(entry.suffix in SUFFIXES for entry in entries):
            found = {"1": self._file(folder, config)}
        return found

    def _file(self, folder: Path, config: Path) -> _Source:
        if not self._inside(folder):
            return self._source(folder, config)
        if _is_checkpoint(folder):
            return self._source(next((entry for entry in _below(folder) if not self._inside(entry)), folder), config)
        files = [entry for entry in _entries(folder) if entry.suffix in SUFFIXES and entry.is_file()]
        chosen = [entry for entry in files if entry.stem == "model"] or files
        if len(chosen) != 1:
            return _Source(None, config, f"{folder.name}: has {len(chosen)} model files: expected one, or one named model")
        return self._source(chosen[0], config)

    def _source(self, path: Path, config: Path) -> _Source:
        if not self._inside(path):
            return _Source(None, config, f"{path.name}: is a link to outside of the folder that is served")
        return _Source(Path(os.path.realpath(path)), config)


def _is_checkpoint(folder: Path) -> bool:
    """Whether it is a folder as transformers, sentence-transformers or onnxruntime-genai write it."""
    names = {entry.name for entry in _entries(folder)}
    if not names.isdisjoint(("modules.json", "genai_config.json")):
        return True
    return "config.json" in names and not names.isdisjoint(("tokenizer.json", *CHECKPOINTS))


def _below(folder: Path) -> Iterator[Path]:
    """Everything in a folder, and in the folders in it that are no links."""
    for entry in _entries(folder):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry)


def _entries(folder: Path) -> list[Path]:
    """Entries of a folder, without hidden names."""
    found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    found.append(Path(entry.path))
                if len(found) > MOST:
                    raise ArgumentError(f"serve: {folder.name}: has more than {MOST} entries")
    except OSError as error:
        logs.event("folder not readable", level="error", folder=folder.name, why=error.strerror)
    return sorted(found)


def _latest(versions: dict[str, Any]) -> str:
    return max(versions, key=int)
