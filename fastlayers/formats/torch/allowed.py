"""The closed list of names that a torch file may call, and this package's functions, which are called instead and make records.

Nothing is imported or looked up by a name of the file. Calling what is not listed is an error at the end of the pickle
(`Context.check_unknown`), which names all of it. Making an object of an unknown class without calling anything (NEWOBJ) gives
an inert record: it is left out of the result, unless it holds tensors, which is an error too (`names`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..source import quote
from . import ndarrays, tensors
from .records import Context, Dict, Global, Record, Refused, Set

_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg", "torch.tensor": "torch._tensor"}


def resolve(module: str, name: str) -> Global:
    """The global of this name, modules of Python 2 and of older torch by their new names."""
    return Global(f"{_RENAMED.get(module, module)}.{name}")


def call(function: Global, args: tuple[Any, ...], context: Context) -> object:
    """Returns the result that the function would have, as a record or a plain value."""
    maker = _CALLS.get(function.name)
    if maker is not None:
        return maker(args, context)
    if function.name not in _INERT and not function.name.startswith("__torch__."):
        context.unknown[function.name] = None
    return Record(function.name, args)


def make(made: Global, args: tuple[Any, ...], context: Context) -> object:
    """A new object of the class, which has not run anything."""
    return call(made, args, context) if made.name in _CALLS else Record(made.name, args)


def _dict(args: tuple[Any, ...], context: Context) -> object:
    """A dict from nothing, from a dict, or from pairs."""
    if not args:
        return Dict()
    given = args[0]
    if len(args) > 1 or type(given) not in (Dict, list, tuple):
        context.fail(f"a dict is made of {quote(args)}, expected a list of pairs")
    items = list(given)
    context.charge(len(items))  # it may be copied many times
    if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in items):
        context.fail("a dict is made of values that are no pairs")
    return Dict((key, value) for key, value in items)


def _default_dict(args: tuple[Any, ...], context: Context) -> object:
    return _dict(args[1:], context)


def _set(args: tuple[Any, ...], context: Context) -> object:
    items = args[0] if args else ()
    if len(args) > 1 or type(items) not in (list, tuple, Set):
        context.fail(f"a set is made of {quote(args)}, expected a list")
    context.charge(len(items))
    return Set(items)


def _size(args: tuple[Any, ...], context: Context) -> object:
    if len(args) != 1 or type(args[0]) is not tuple:
        context.fail(f"a torch.Size is made of {quote(args)}, expected a tuple")
    return args[0]


def _encode(args: tuple[Any, ...], context: Context) -> object:
    """Makes bytes as protocol 2 writes them: of a text, and the name of the encoding that makes bytes of it."""
    if len(args) != 2 or not isinstance(args[0], str) or args[1] not in ("latin1", "latin-1"):
        context.fail("bytes are not written as latin-1 text")
    context.charge_bytes(len(args[0]))
    try:
        return args[0].encode("latin-1")
    except UnicodeEncodeError:
        return context.fail("bytes are written as text that is not latin-1")


def _bytes(args: tuple[Any, ...], context: Context) -> object:
    return args[0] if len(args) == 1 and isinstance(args[0], bytes) else Record("builtins.bytes", args)


def _first(args: tuple[Any, ...], context: Context) -> object:
    """The value that a wrapper was given: a parameter's tensor, a list with its type."""
    if not args:
        context.fail("a value is made from an empty argument list, expected a value")
    return args[0]


def _reconstruct(args: tuple[Any, ...], context: Context) -> object:
    """`copyreg._reconstructor(class, base, state)`: a new object of the class."""
    if not args or type(args[0]) is not Global:
        context.fail(f"an object is made of {quote(args)}, expected its class first")
    return Record(args[0].name, args[1:])


def _subclass(args: tuple[Any, ...], context: Context) -> object:
    """`_rebuild_from_type_v2(function, class, args, state)`: a tensor that had attributes, or is of its own class."""
    if len(args) != 4 or type(args[0]) is not Global or type(args[1]) is not Global or type(args[2]) is not tuple:
        context.fail(f"a tensor with attributes is made of {len(args)} values, expected function, class, arguments and state")
    function, made, inner, _ = args
    if made.name not in _TENSOR_CLASSES:
        return Refused(f"of the class {quote(made.name)}")
    if function.name == _SUBCLASS:  # so that no depth of nesting is reached
        context.fail("a tensor with attributes is made of another one")
    return call(function, inner, context)


def _refused(what: str) -> Callable[[tuple[Any, ...], Context], object]:
    return lambda args, context: Refused(what)


_SUBCLASS = "torch._tensor._rebuild_from_type_v2"
_TENSOR_CLASSES = ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer")

_CALLS: dict[str, Callable[[tuple[Any, ...], Context], object]] = {
    "collections.OrderedDict": _dict,
    "collections.Counter": _dict,
    "collections.defaultdict": _default_dict,
    "builtins.dict": _dict,
    "builtins.set": _set,
    "builtins.frozenset": _set,
    "builtins.bytes": _bytes,
    "_codecs.encode": _encode,
    "copyreg._reconstructor": _reconstruct,
    "torch.Size": _size,
    "torch._utils._rebuild_tensor": tensors.rebuild,
    "torch._utils._rebuild_tensor_v2": tensors.rebuild,
    "torch._utils._rebuild_tensor_v3": tensors.rebuild_typed,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch.nn.parameter.Parameter": _first,
    "torch.nn.parameter.Buffer": _first,
    _SUBCLASS: _subclass,
    "torch.jit._pickle.build_intlist": _first,
    "torch.jit._pickle.build_tensorlist": _first,
    "torch.jit._pickle.build_doublelist": _first,
    "torch.jit._pickle.build_boollist": _first,
    "torch.jit._pickle.restore_type_tag": _first,
    "torch._utils._rebuild_sparse_tensor": _refused("sparse"),
    "torch._utils._rebuild_sparse_csr_tensor": _refused("sparse"),
    "torch._utils._rebuild_qtensor": _refused("quantized"),
    "torch._utils._rebuild_nested_tensor": _refused("nested"),
    "torch._utils._rebuild_meta_tensor_no_storage": _refused("without data (of the device meta)"),
    "torch._utils._rebuild_wrapper_subclass": _refused("of a class of its own"),
    "torch._utils._rebuild_device_tensor_from_numpy": _refused("of a device that has no storages"),
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _refused("of a device that has no storages"),
    "torch._utils._rebuild_xla_tensor": _refused("of a device that has no storages"),
    "torch._utils._rebuild_mkldnn_tensor": _refused("in the layout of oneDNN"),
    "torch.storage._load_from_bytes": _refused("a file within the file"),
    **{f"{module}.multiarray._reconstruct": ndarrays.reconstruct for module in ("numpy.core", "numpy._core")},
    **{f"{module}.numeric._frombuffer": ndarrays.from_buffer for module in ("numpy.core", "numpy._core")},
}

# Values that hold no weights: calling them gives a record that says nothing.
_INERT = frozenset(
    (
        "builtins.bytearray",
        "builtins.complex",
        "builtins.float",
        "builtins.int",
        "builtins.object",
        "builtins.range",
        "builtins.slice",
        "collections.deque",
        "datetime.date",
        "datetime.datetime",
        "datetime.timedelta",
        "numpy.dtype",
        "numpy.core.multiarray.scalar",
        "numpy._core.multiarray.scalar",
        "pathlib.Path",
        "pathlib.PosixPath",
        "pathlib.PurePosixPath",
        "pathlib.PureWindowsPath",
        "pathlib.WindowsPath",
        "pathlib._local.PosixPath",
        "pathlib._local.WindowsPath",
        "torch.device",
        "torch.serialization._get_layout",
    )
)
