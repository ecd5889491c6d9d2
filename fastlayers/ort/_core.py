"""The inner object of a session: the model, its inputs and outputs as onnxruntime describes them, and the checks of a run.

onnxruntime has this as the class `InferenceSession` of its compiled module; `Session._sess` is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from .._deadline import Asked
from .._masked import is_masked
from ..errors import DTypeError, Error, LimitError
from ..model.model import Model
from ..model.specs import MapSpec, OptionalSequenceSpec, OptionalSpec, SequenceSpec, TensorSpec
from ._described import ModelMetadata, NodeArg
from ._errors import Fail, InvalidArgument, OrtError, OrtRuntimeError, RuntimeException
from ._loading import model_of
from ._options import RunOptions, SessionOptions
from ._overridden import Overridden
from ._providers import CPU, registered
from ._values import OrtDevice, OrtValue, OrtValueVector, type_of

if TYPE_CHECKING:
    from ._devices import OrtEpDevice, OrtMemoryInfo
    from ._profiling import Profiler

__all__ = ["Core"]

_FIX = "Please fix either the inputs/outputs or the model."
_STRINGS = ("tensor(string)",)


class Core:
    """A loaded model.

    Args:
        options: `SessionOptions`.
        source: a path, or bytes.
        is_path: which of both.
        read_config: has no meaning: no configuration is read from a model.
    """

    def __init__(self, options: SessionOptions, source: str | bytes, is_path: bool = True, read_config: bool = False) -> None:
        if not isinstance(options, SessionOptions):
            raise DTypeError(
                f"InferenceSession: incompatible constructor arguments: sess_options is of type {type(options).__name__}: "
                "expected SessionOptions"
            )
        if not isinstance(source, str if is_path else bytes):
            raise DTypeError(f"InferenceSession: incompatible constructor arguments: {shown(source)}: expected a path or bytes")
        self.session_options = options
        number = options.intra_op_num_threads if options.use_per_session_threads else _pool_size()
        begin = time.perf_counter_ns()
        self._profiler = _profiler(options, begin)
        self._model: Model = model_of(source, options, max(0, number))
        self._overridden = Overridden(self._model)
        sizes = options._sizes
        self._inputs = [_fixed(spec, sizes) for spec in self._model.inputs]
        overridable = [_fixed(spec, sizes) for spec in self._overridden.specs]
        self._by_name = {spec.name: (spec, NodeArg(spec).type) for spec in (*self._inputs, *overridable)}
        self.inputs_meta = [NodeArg(spec) for spec in self._inputs]
        self.outputs_meta = [NodeArg(_fixed(spec, sizes)) for spec in self._model.outputs]
        self._outputs = [spec.name for spec in self._model.outputs]
        self._required = [spec.name for spec in self._inputs if not isinstance(spec, (OptionalSpec, OptionalSequenceSpec))]
        self._fast = not sizes and self._profiler is None
        self.model_meta = ModelMetadata(self._model)
        self.overridable_initializers = [NodeArg(spec) for spec in overridable]
        self._providers = [CPU]
        if self._profiler is not None:
            self._profiler.kept_by(self)
            name = "model_loading_uri" if is_path else "model_loading_array"
            self._profiler.session(name, begin, time.perf_counter_ns())

    def initialize_session(self, providers: Sequence[str], options: Sequence[dict[str, str]], disabled: Any = ()) -> None:
        """Takes the providers; the processor is always the last.

        Raises:
            OrtRuntimeError: there is no provider of a name.
        """
        registered(providers, options)

    @property
    def input_meminfos(self) -> list[OrtMemoryInfo]:
        """The place of each input."""
        from ._devices import MEMORY

        return [MEMORY] * len(self._inputs)

    @property
    def output_meminfos(self) -> list[OrtMemoryInfo]:
        """The place of each output."""
        from ._devices import MEMORY

        return [MEMORY] * len(self._outputs)

    @property
    def input_epdevices(self) -> list[OrtEpDevice]:
        """The device of each input."""
        from ._devices import EP_DEVICE

        return [EP_DEVICE] * len(self._inputs)

    @property
    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, in nanoseconds since 1970; 0 without."""
        return 0 if self._profiler is None else self._profiler.start_ns

    def get_providers(self) -> list[str]:
        """The names of the providers, the processor's last."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """No options for any provider."""
        return {name: {} for name in self._providers}

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, output_names: Sequence[str], input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        """The outputs of these names, in their order."""
        if run_options is None and self._fast and type(output_names) is list and output_names == self._outputs:
            found = self._model._runner.run(input_feed)
            if found is not None:  # every input was exactly what the model says
                return list(found.values())
        if run_options is not None and not isinstance(run_options, RunOptions):
            found_type = type(run_options).__name__
            raise DTypeError(f"run(): incompatible function arguments: run_options is of type {found_type}: expected RunOptions")
        names = self._names(output_names)
        arrays = {name: self._checked(name, value) for name, value in input_feed.items()}
        for spec in self._inputs:
            if spec.name not in arrays:
                if spec.name in self._required:
                    raise Fail(f"Missing Input: {spec.name}")
                arrays[spec.name] = None
        return self._given(arrays, names, None, run_options)

    def _names(self, names: Any) -> list[str]:
        if isinstance(names, (str, bytes)) or not all(isinstance(name, str) for name in names):
            raise DTypeError(
                f"run(): incompatible function arguments: output_names is {shown(names)}: expected None or a list of names"
            )
        wanted = [str(name) for name in names]
        for name in wanted:
            if name not in self._outputs:
                raise InvalidArgument(f"Invalid output name:{name}")
        return wanted

    def _given(
        self, arrays: dict[str, Any], names: list[str], out: dict[str, np.ndarray] | None, options: RunOptions | None
    ) -> list[Any]:
        """Runs on what was checked."""
        if options is None:
            return self._found(arrays, names, out)
        options._ask()
        with Asked(options._ask):
            found = self._found(arrays, names, out)
        if "memory.enable_memory_arena_shrinkage" in options._entries:
            from .._held import trim_memory

            trim_memory()
        return found

    def _found(self, arrays: dict[str, Any], names: list[str], out: dict[str, np.ndarray] | None) -> list[Any]:
        whole = set(names) == set(self._outputs)
        model = self._overridden.fed(arrays)
        begin = time.perf_counter_ns()
        try:
            found = model.run(arrays, None if whole else list(dict.fromkeys(names)), out=out)
        except LimitError as error:
            raise RuntimeException(f"Non-zero status code returned while running the model. Status Message: {error}") from error
        except OrtError:
            raise
        except Error as error:
            raise Fail(f"Non-zero status code returned while running the model. Status Message: {error}") from error
        if self._profiler is not None and self._profiler.going:
            self._profiler.session("model_run", begin, time.perf_counter_ns())
            self._profiler.steps(model, arrays, begin)
        return [found[name] for name in names]

    def _checked(self, name: str, value: Any) -> Any:
        """One input, after the checks that onnxruntime makes of it, in its order and its words."""
        known = self._by_name.get(name)
        if known is None:
            raise InvalidArgument(f"Invalid input name: {name}")
        spec, kind = known
        if isinstance(value, OrtValue):
            value = value._feed()
        if type(spec) is not TensorSpec:
            return _nested(spec, kind, value)
        if not isinstance(value, np.ndarray):
            value = _read(spec, kind, value)
        if is_masked(value):
            raise InvalidArgument(f"input {name!r} is a masked array: expected a plain one, for example x.filled(0)")
        given = type_of(value)
        if given != kind and value.dtype.kind != "V":
            raise InvalidArgument(f"Unexpected input data type. Actual: ({given}) , expected: ({kind})")
        if value.dtype.kind == "S":
            value = value.astype("U")
        want = spec.shape
        if want:  # a scalar's, or an unknown one, is not compared
            if len(want) != value.ndim:
                raise InvalidArgument(f"Invalid rank for input: {name} Got: {value.ndim} Expected: {len(want)} {_FIX}")
            wrong = [i for i, size in enumerate(want) if isinstance(size, int) and size != value.shape[i]]
            if wrong:
                lines = "".join(f" index: {i} Got: {value.shape[i]} Expected: {want[i]}\n" for i in wrong)
                raise InvalidArgument(f"Got invalid dimensions for input: {name} for the following indices\n{lines} {_FIX}")
        return value

    def run_with_ort_values(
        self, feeds: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None
    ) -> OrtValueVector:
        """The same on values."""
        return OrtValueVector(OrtValue._of(_kept(found)) for found in self.run(output_names, feeds, run_options))

    def run_with_ortvaluevector(
        self, run_options: RunOptions | None, feed_names: Sequence[str], feeds: Sequence[OrtValue], fetch_names: Sequence[str],
        fetches: Any, fetch_devices: Sequence[OrtDevice],
    ) -> None:  # fmt: skip
        """The same; the results are added to `fetches`, or written into the values that it has."""
        found = self.run_with_ort_values(dict(zip(feed_names, feeds, strict=True)), list(fetch_names), run_options)
        for i, value in enumerate(found):
            if i < len(fetches):
                fetches[i].update_inplace(value)
            else:
                fetches.append(value)

    def run_async(
        self,
        output_names: Sequence[str],
        feeds: Mapping[str, Any],
        callback: Callable[..., Any],
        user_data: Any,
        run_options: Any,
    ) -> None:
        """The same in another thread; `callback` is called there with the results, `user_data`, and an error's text."""
        if not callable(callback):
            raise DTypeError(f"run_async(): incompatible function arguments: callback is {shown(callback)}: expected a function")

        def run() -> None:
            found: list[Any] = []
            told = ""
            try:
                found = self.run(output_names, feeds, run_options)
            except OrtError as error:
                told = error.text
            except Exception as error:  # the thread that waits for the callback must hear of it, whatever it is
                told = str(error)
            callback(found, user_data, told)

        from ..model.hop import submit

        submit(run)

    # ---- the rest ---------------------------------------------------------------------------------------------------

    def end_profiling(self) -> str:
        """Writes the profile; its path, or "" if there is none."""
        return "" if self._profiler is None else self._profiler.end()

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], kind: Any, device: OrtDevice) -> OrtValue:
        """A tensor of fresh memory."""
        if device.device_type() != 0:
            raise OrtRuntimeError("no allocator of this session fits the device: expected that of the processor")
        return OrtValue.ortvalue_from_shape_and_type(shape, kind)

    create_ortvalue_from_shape_and_onnx_type = create_ortvalue_from_shape_and_type


def _pool_size() -> int:
    from ._environment import pool_size

    return pool_size()


def _profiler(options: SessionOptions, begin: int) -> Profiler | None:
    if not options.enable_profiling:
        return None
    from ._profiling import Profiler

    return Profiler(options.profile_file_prefix, begin)


def _fixed(spec: TensorSpec, sizes: Mapping[str, int]) -> TensorSpec:
    """With the sizes that the options give names."""
    if not sizes or spec.shape is None:
        return spec
    return spec._replace(shape=tuple(sizes.get(d, d) if isinstance(d, str) else d for d in spec.shape))


def _kept(found: Any) -> Any:
    """A run's result, as a value may hold it."""
    return found if isinstance(found, (np.ndarray, list, tuple, dict)) or found is None else np.asarray(found)


def _read(spec: TensorSpec, kind: str, value: Any) -> np.ndarray:
    """A list as the array that is expected."""
    if value is None:
        raise Fail(f"Missing Input: {spec.name}")
    if not isinstance(value, (list, tuple)):
        raise OrtRuntimeError(
            f"Unable to handle object of type {type(value)}: input {spec.name!r} is to be {kind}: expected a numpy array"
        )
    try:
        return np.array(value, object if kind in _STRINGS else spec.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"input {spec.name!r}: {shown(value)} is no {kind}: {error}") from error


def _nested(spec: TensorSpec, kind: str, value: Any) -> Any:
    """A list of arrays, an optional or a map."""
    if value is None:
        return None
    if isinstance(spec, MapSpec):
        return value
    if isinstance(value, np.ndarray) and isinstance(spec, (SequenceSpec, OptionalSequenceSpec)):
        raise InvalidArgument(f"input with name: '{spec.name}' expected to be of type: {kind} but received a tensor")
    for item in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(item, np.ndarray) and spec.dtype.kind in "fiub" and item.dtype != spec.dtype:
            raise InvalidArgument(f"Unexpected input data type. Actual: ({type_of(item)}) , expected: ({kind})")
    return value
