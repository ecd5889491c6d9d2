"""`install`: `import onnxruntime` gives fastlayers.ort from then on, with the modules and the metadata that packages look for."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError
from ._environment import VERSION

__all__ = ["install", "uninstall"]

NAME = "onnxruntime"
_FOLDER = str(Path(__file__).parent)
# What stands in for onnxruntime's own modules while it is installed, and is put back afterwards.
_before: dict[str, ModuleType] = {}


def _public() -> dict[str, Any]:
    ort = import_module("fastlayers.ort")
    return {name: getattr(ort, name) for name in (*ort.__all__, *ort.TOLD) if name not in ("install", "uninstall")}


def _root() -> dict[str, Any]:
    ort = import_module("fastlayers.ort")
    return {**_public(), "__getattr__": _asked_for(NAME, ort.__getattr__), "__doc__": ort.__doc__}


def _capi() -> dict[str, Any]:
    return {"__getattr__": _asked_for(f"{NAME}.capi", None)}


def _asked_for(package: str, others: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose modules are there without being imported, as onnxruntime imports its own."""

    def fetch(name: str) -> Any:
        if f"{package}.{name}" in _MODULES:
            return import_module(f"{package}.{name}")
        if others is not None:
            return others(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return fetch


def _compiled() -> dict[str, Any]:
    """The compiled module: its session and values are what stands after ours."""
    from . import _core, _enums_of_devices, _options, _values

    return {
        **_public(),
        **_enums_of_devices.ArenaExtendStrategy.__members__,
        "InferenceSession": _core.Core,
        "OrtValueVector": _values.OrtValueVector,
        "get_default_session_options": _options.SessionOptions,
    }


def _collection() -> dict[str, Any]:
    from . import _providers

    return {
        **_public(),
        "C": import_module(f"{NAME}.capi._pybind_state"),
        **_named(_providers, "check_and_normalize_provider_args"),
    }


def _named(module: ModuleType, *names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names}


def _validation() -> dict[str, Any]:
    return {"get_package_name_and_version_info": lambda: (NAME, VERSION, ""), "check_distro_info": lambda: None}


class TypeHelper:
    """Types of onnxruntime as those of numpy and torch; packages take it from onnxruntime.transformers."""

    _NUMPY: ClassVar[dict[str, Any]] = {
        "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(bool)": bool,
        **{f"tensor({sign}int{bits})": getattr(np, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
        "tensor(complex64)": np.complex64, "tensor(complex128)": np.complex128,
    }  # fmt: skip

    @staticmethod
    def get_input_type(ort_session: Any, name: str) -> str:
        """The type of a session's input."""
        return TypeHelper._of(ort_session.get_inputs(), name, "input")

    @staticmethod
    def get_output_type(ort_session: Any, name: str) -> str:
        """The type of a session's output."""
        return TypeHelper._of(ort_session.get_outputs(), name, "output")

    @staticmethod
    def _of(specs: Iterable[Any], name: str, what: str) -> str:
        for spec in specs:
            if spec.name == name:
                return str(spec.type)
        raise ArgumentError(f"{what} name {name} not found")

    @staticmethod
    def ort_type_to_numpy_type(ort_type: str) -> Any:
        """A type of numpy."""
        if ort_type not in TypeHelper._NUMPY:
            raise ArgumentError(f"{ort_type} not found in map")
        return TypeHelper._NUMPY[ort_type]

    @staticmethod
    def ort_type_to_torch_type(ort_type: str) -> Any:
        """A type of torch, which is imported for it."""
        torch: Any = import_module("torch")
        return getattr(torch, np.dtype(TypeHelper.ort_type_to_numpy_type(ort_type)).name)

    @staticmethod
    def numpy_type_to_torch_type(numpy_type: Any) -> Any:
        """A type of torch, which is imported for it."""
        torch: Any = import_module("torch")
        return getattr(torch, np.dtype(numpy_type).name)

    @staticmethod
    def torch_type_to_numpy_type(torch_type: Any) -> Any:
        """A type of numpy."""
        return np.dtype(str(torch_type).removeprefix("torch.")).type

    @staticmethod
    def get_io_numpy_type_map(ort_session: Any) -> dict[str, Any]:
        """The type of numpy of every input and output."""
        specs = (*ort_session.get_inputs(), *ort_session.get_outputs())
        return {spec.name: TypeHelper.ort_type_to_numpy_type(spec.type) for spec in specs}


def _backend() -> dict[str, Any]:
    from . import _backend as backend

    return _named(backend, *backend.__all__)


# The modules of the package, with what is in them. Any other is not there, as a module that an installation lacks.
_MODULES: dict[str, Callable[[], dict[str, Any]]] = {
    NAME: _root,
    f"{NAME}.backend": _backend,
    f"{NAME}.backend.backend": _backend,
    f"{NAME}.backend.backend_rep": _backend,
    f"{NAME}.capi": _capi,
    f"{NAME}.capi._pybind_state": _compiled,
    f"{NAME}.capi.build_and_package_info": lambda: {"package_name": NAME, "__version__": VERSION},
    f"{NAME}.capi.onnxruntime_inference_collection": _collection,
    f"{NAME}.capi.onnxruntime_pybind11_state": _compiled,
    f"{NAME}.capi.onnxruntime_validation": _validation,
    f"{NAME}.transformers": dict,
    f"{NAME}.transformers.io_binding_helper": lambda: {"TypeHelper": TypeHelper},
}


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(_MODULES[module.__name__]())
        module.__dict__["__file__"] = f"{_FOLDER}/__init__.py"
        module.__dict__["_stands_in"] = "fastlayers.ort"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that stand in, and the metadata of a distribution."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _MODULES:
            return None
        package = any(name.startswith(f"{fullname}.") for name in _MODULES)
        spec = importlib.machinery.ModuleSpec(fullname, _Loader(), origin=f"{_FOLDER}/__init__.py", is_package=package)
        if package:
            # Without a folder: nothing of an onnxruntime that is installed too is taken for a part of this one.
            spec.submodule_search_locations = []
        return spec

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        name = getattr(context, "name", None)
        if name is None or name.lower().replace("_", "-") == NAME:
            from ._metadata import StandIn

            yield StandIn()


def _installed() -> _Finder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)


def _imported() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name == NAME or name.startswith(f"{NAME}.")}


def install(force: bool = False) -> None:
    """From now on ``import onnxruntime`` gives fastlayers.ort in this process, whether onnxruntime is installed or not.

    Call it before anything imports onnxruntime. It stands in for ``onnxruntime``, its ``capi`` modules, its ``backend``,
    ``transformers.io_binding_helper``, and the metadata that ``importlib.metadata`` finds. Other parts of onnxruntime's package,
    such as ``quantization``, are then not there. Calling it again does nothing.

    Args:
        force: whether onnxruntime may be replaced where it is imported already; what holds its names keeps them.

    Raises:
        ArgumentError: onnxruntime itself is imported already.

    >>> import fastlayers.ort
    >>> fastlayers.ort.install()
    >>> import onnxruntime
    >>> onnxruntime.InferenceSession is fastlayers.ort.InferenceSession
    True
    >>> fastlayers.ort.uninstall()
    """
    if _installed() is not None:
        return
    found = _imported()
    if found and not force:
        where = getattr(found.get(NAME), "__file__", None)
        raise ArgumentError(
            f"install: onnxruntime is imported already (from {where}): call install() before it is, or install(force=True), "
            "after which who has imported it keeps what they have"
        )
    for name in found:
        del sys.modules[name]
    _before.clear()
    _before.update(found)
    sys.meta_path.insert(0, _Finder())
    import_module(NAME)


def uninstall() -> None:
    """Takes it back: ``import onnxruntime`` gives what is installed again. Does nothing without `install`."""
    finder = _installed()
    if finder is None:
        return
    sys.meta_path.remove(finder)
    for name, module in _imported().items():
        if getattr(module, "_stands_in", None):
            del sys.modules[name]
    sys.modules.update(_before)
    _before.clear()
