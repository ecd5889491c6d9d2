"""`ModelFile`: a model by the path and the content of its file, which workers load once each."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from .._arguments import as_path, shown
from .._locks import Lock
from ..errors import ArgumentError, DTypeError, FormatError
from ..model.loading import load
from ..model.model import Model
from ..model.origin import Origin, look, unchanged

__all__ = ["ModelFile", "model_file"]

KEPT = 4  # models that a process keeps loaded, the last ones used
BLOCK = 1 << 20
_OPTIONS = {
    name: parameter.default
    for name, parameter in inspect.signature(load).parameters.items()
    if name not in ("source", "num_threads")
}

_lock = Lock()
_loaded: dict[tuple[Any, ...], Model] = {}
_digests: dict[tuple[Any, ...], bytes] = {}


class ModelFile:
    """A file of a model, for work in other processes: pickled as its path, a digest of its content, and how to load it.

    The process that gets it loads the file when it first runs it, and keeps the model for all that name the same file later. The
    file must be there under the same path, with the same content; time of change and inode may differ, so that each machine may
    have its own copy. External data of an ONNX file, which is in files next to it, is not part of the digest.

    Args:
        path: the file. It is read once, now, for the digest.
        num_threads: the most threads that one call uses; None for the limit of the process, which honours ``OMP_NUM_THREADS``.
        **options: further arguments of `load`.

    Raises:
        FormatError: there is no such file, or, later and in the worker, the file has another content.
        ArgumentError: an option is not one of `load`.

    >>> import pickle, tempfile, numpy as np, fastlayers as fl
    >>> from fastlayers.integrations import ModelFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", 2))).save(f"{folder}/relu.safetensors")
    ...     pickle.loads(pickle.dumps(ModelFile(f"{folder}/relu.safetensors"))).run({"x": np.array([[-1.0, 2.0]])})
    {'relu': array([[0., 2.]], dtype=float32)}
    """

    __slots__ = ("_digest", "num_threads", "options", "path", "size")

    def __init__(self, path: str | os.PathLike[str], *, num_threads: int | None = None, **options: Any) -> None:
        if unknown := sorted(set(options) - set(_OPTIONS)):
            raise ArgumentError(f"ModelFile: {unknown}: expected options of `load`: {sorted(_OPTIONS)}")
        self.path = os.path.abspath(as_path("ModelFile", path))
        self.num_threads, self.options = _threads(num_threads), {}
        self.options = {name: value for name, value in options.items() if value != _OPTIONS[name]}
        found = _look(self.path)
        self.size, self._digest = found.size, _digest_of(found)

    def model(self) -> Model:
        """The model, which this process loads once.

        Raises:
            FormatError: the file is missing, or its content is not what it was when the ModelFile was made.
        """
        key = (self.path, self.size, self._digest, self.num_threads, *sorted(self.options.items()))
        with _lock:
            made = _loaded.pop(key, None) or self._load()
            _loaded[key] = made  # the last one used comes last
            while len(_loaded) > KEPT:
                del _loaded[next(iter(_loaded))]
        return made

    def _load(self) -> Model:
        found = _look(self.path)
        if (found.size, _digest_of(found)) != (self.size, self._digest):
            raise FormatError(
                f"ModelFile: {self.path!r} has another content here than where the ModelFile was made: expected {self.size} "
                f"bytes with digest {self._digest.hex()[:16]}, got {found.size} with {_digest_of(found).hex()[:16]}; all "
                " workers must see the same file under this path"
            )
        model: Model = load(self.path, num_threads=self.num_threads or 0, **self.options)
        if look(self.path, {}) != found:
            raise FormatError(f"ModelFile: {self.path!r} was changed while it was loaded: expected a file that stays as it is")
        return model

    def __call__(self, *arrays: Any) -> Any:
        """Calls the model; see `Model`."""
        return self.model()(*arrays)

    def run(self, feeds: Any, outputs: Any = None) -> dict[str, np.ndarray]:
        """Runs the model; see `Model.run`."""
        return self.model().run(feeds, outputs)

    def with_threads(self, number: int | None) -> ModelFile:
        """The same file, for calls of at most so many threads."""
        made = object.__new__(type(self))
        made.__setstate__({**self.__getstate__(), "num_threads": _threads(number)})
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ModelFile.__slots__}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __reduce__(self) -> Any:
        return object.__new__, (type(self),), self.__getstate__()

    def __dask_tokenize__(self) -> Any:
        """Parts of the identity that results depend on: the content and how it is loaded; neither its path, nor the number of
        threads."""
        return "fastlayers.integrations.ModelFile", self.size, self._digest.hex(), sorted(self.options.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelFile) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((self.path, self._digest, self.num_threads))

    def __repr__(self) -> str:
        return f"ModelFile({self.path!r}, {self.size} bytes, digest {self._digest.hex()[:16]})"


def model_file(what: str, source: Any, num_threads: int | None, options: Mapping[str, Any]) -> ModelFile:
    """The file that a path, a ModelFile, or a model that was loaded from a mapped file, names."""
    if isinstance(source, ModelFile):
        if options:
            raise ArgumentError(f"{what}: {sorted(options)} given with a ModelFile: expected them where the ModelFile is made")
        return source if num_threads is None else source.with_threads(num_threads)
    if isinstance(source, Model):
        origin = source._origin
        if options or origin is None or not unchanged(origin):
            given = f"with {sorted(options)}" if options else "that no unchanged file holds"
            raise ArgumentError(f"{what}: path is a Model {given}: expected the path of a file; `Model.save` writes one")
        return ModelFile(origin.path, num_threads=num_threads or source.num_threads or None, **origin.options)
    if not isinstance(source, (str, os.PathLike)):
        raise DTypeError(f"{what}: path is of type {type(source).__name__}: expected the path of a file, or a ModelFile")
    return ModelFile(source, num_threads=num_threads, **options)


def _threads(number: Any) -> int | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
        raise ArgumentError(f"num_threads: {shown(number)}: expected a positive int, or None for the limit of the process")
    return int(number)


def _look(path: str) -> Origin:
    found = look(path, {})
    if found is None:
        raise FormatError(f"ModelFile: {path!r} is no file that can be read: expected the file of a model, on every machine")
    return found


def _digest_of(file: Origin) -> bytes:
    """The digest of a file's content, read once for as long as it looks the same."""
    key = (file.path, file.size, file.changed, file.head)
    found = _digests.get(key)
    if found is None:
        sum_ = blake2b(digest_size=16)
        with open(file.path, "rb") as opened:
            while block := opened.read(BLOCK):
                sum_.update(block)
        if look(file.path, {}) != file:
            raise FormatError(f"ModelFile: {file.path!r} was changed while it was read: expected a file that stays as it is")
        if len(_digests) >= 64:
            _digests.clear()
        found = _digests[key] = sum_.digest()
    return found
