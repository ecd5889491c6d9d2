"""`InferenceSession`, with the methods, checks and errors of onnxruntime's."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._arguments import shown
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ._core import Core
from ._described import ModelMetadata, NodeArg
from ._errors import OrtRuntimeError
from ._options import RunOptions, SessionOptions
from ._providers import CPU, check_and_normalize_provider_args, get_available_providers
from ._values import OrtDevice, OrtValue

if TYPE_CHECKING:
    from ._binding import IOBinding
    from ._devices import OrtEpDevice, OrtMemoryInfo

__all__ = ["InferenceSession", "Session"]

# Of **kwargs, what onnxruntime reads.
_OTHERS = ("enable_fallback", "read_config_from_model", "disabled_optimizers")
_ARGUMENTS = ("path_or_bytes", "sess_options", "providers", "provider_options", *_OTHERS)


class Session:
    """The base of all sessions. `_sess`, the attributes named like onnxruntime's, and subclassing are there for packages that use
    them.
    """

    _sess_options: SessionOptions
    _inputs_meta: list[NodeArg]
    _outputs_meta: list[NodeArg]
    _overridable_initializers: list[NodeArg]
    _model_meta: ModelMetadata
    _providers: list[str]
    _provider_options: dict[str, dict[str, str]]

    def __init__(self, enable_fallback: bool = True) -> None:
        self._sess: Any = None
        self._enable_fallback = enable_fallback

    # ---- what the model is ------------------------------------------------------------------------------------------

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the file's order."""
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the file's order."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Initializers that are inputs too, whose value a run may give; none in files of before ONNX's IR version 4."""
        return self._overridable_initializers

    def get_modelmeta(self) -> ModelMetadata:
        """The metadata that the file has of itself."""
        return self._model_meta

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory of each input: the processor's."""
        return self._sess.input_meminfos  # type: ignore[no-any-return]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory of each output: the processor's."""
        return self._sess.output_meminfos  # type: ignore[no-any-return]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """The device of each input: the processor."""
        return self._sess.input_epdevices  # type: ignore[no-any-return]

    def get_providers(self) -> list[str]:
        """The processor's provider."""
        return self._providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options of the processor's provider: none."""
        return self._provider_options

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """Cannot be had.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("get_provider_graph_assignment_info: there is one provider: `Model.summary` lists the steps")

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Makes the session again, with these providers."""
        self._reset_session(providers, provider_options)

    def disable_fallback(self) -> None:
        """From now on providers that cannot be had are errors."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """From now on the processor is taken where providers cannot be had."""
        self._enable_fallback = True

    def _reset_session(self, providers: Any, provider_options: Any) -> None:
        raise UnsupportedError("set_providers: this session was not made from a model: expected an InferenceSession")

    # ---- running ----------------------------------------------------------------------------------------------------

    def _validate_input(self, feed_input_names: list[str]) -> None:
        missing = [name for name in self._sess._required if name not in feed_input_names]
        if missing:
            raise ArgumentError(f"Required inputs ({missing}) are missing from input feed ({feed_input_names}).")

    def _wanted(self, names: Any) -> Any:
        """All outputs for None, and for an empty list."""
        return self._sess._outputs if names is None or not len(names) else names

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """Runs the model.

        Args:
            output_names: which outputs; all for None or an empty list.
            input_feed: numpy arrays of exactly the types that the model says, or lists, or `OrtValue`s, by name.
            run_options: `RunOptions`, or None.

        Returns:
            The outputs as a list of arrays; a list or a dict for what is none.

        Raises:
            ArgumentError: an input is missing (a ValueError).
            InvalidArgument: a name is not known, or a type or shape is not what the model says.
            Fail: the network cannot take these sizes, or the options say to stop.
        """
        self._validate_input(list(input_feed.keys()))
        return self._sess.run(self._wanted(output_names), input_feed, run_options)  # type: ignore[no-any-return]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[..., Any],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs the model in another thread, which then calls ``callback(results, user_data, error)``; no error is ""."""
        self._validate_input(list(input_feed.keys()))
        self._sess.run_async(self._wanted(output_names), dict(input_feed), callback, user_data, run_options)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """`run` on values, with values as results."""
        feeds = {name: value._get_c_value() for name, value in input_dict_ort_values.items()}
        self._validate_input(list(feeds))
        return list(self._sess.run_with_ort_values(feeds, self._wanted(output_names), run_options))

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model on what is bound.

        Raises:
            ArgumentError: the binding is of another session.
            OrtRuntimeError: the run failed.
        """
        if iobinding._session is not self._sess:
            raise ArgumentError("IOBinding must be used with the session that created it.")
        iobinding._iobinding.run(run_options)

    def run_with_ortvaluevector(
        self, run_options: Any, feed_names: Any, feeds: Any, fetch_names: Any, fetches: Any, fetch_devices: Any
    ) -> None:
        """`run_with_ort_values` on lists; the results are added to `fetches`."""
        self._sess.run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)

    def io_binding(self) -> IOBinding:
        """A new binding of this session's inputs and outputs."""
        from ._binding import IOBinding

        return IOBinding(self)

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, device_type: str, device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A value of fresh memory; see `OrtValue.ortvalue_from_shape_and_type`."""
        device = OrtDevice.make(device_type, device_id, vendor_id)
        return self._sess.create_ortvalue_from_shape_and_type(shape, element_type, device)  # type: ignore[no-any-return]

    # ---- the rest ---------------------------------------------------------------------------------------------------

    def end_profiling(self) -> str:
        """Writes what `SessionOptions.enable_profiling` gathered, a Chrome trace; its path, or "" if there is none."""
        return self._sess.end_profiling()  # type: ignore[no-any-return]

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, in nanoseconds since 1970; 0 without it."""
        return self._sess.get_profiling_start_time_ns  # type: ignore[no-any-return]

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Changes nothing: nothing is captured on a processor."""

    def set_ep_dynamic_options(self, options: dict[str, str]) -> None:
        """Changes nothing, which a warning says: the processor's provider has none."""
        warnings.warn(f"set_ep_dynamic_options: {shown(options)} changes nothing: {CPU} has no such options", stacklevel=2)

    def get_tuning_results(self) -> list[Any]:
        """None: kernels are chosen without tuning."""
        return []

    def set_tuning_results(self, results: Any, *, error_on_invalid: bool = False) -> None:
        """Takes an empty list alone, since kernels are chosen without tuning.

        Raises:
            UnsupportedError: there are some.
        """
        if results:
            raise UnsupportedError("set_tuning_results: kernels are chosen without tuning: expected an empty list")


class InferenceSession(Session):
    """A model that runs as onnxruntime runs it.

    Args:
        path_or_bytes: a path, or the model's bytes. Of every format that `fastlayers.load` knows; external data is looked for
            next to the path.
        sess_options: `SessionOptions`, or None.
        providers: names of providers, or tuples of a name and options. What is not here is warned of, and left out.
        provider_options: options for each name.
        **kwargs: ``enable_fallback``: 0 makes a provider that there cannot be an error; ``disabled_optimizers`` and
            ``read_config_from_model`` change nothing. Any other name is a TypeError, which onnxruntime would swallow.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented, InvalidArgument, Fail: the model cannot be loaded.
        DTypeError: an argument is of the wrong type, or there is none of its name (a TypeError).
        UnsupportedError: the options ask for what cannot be had.

    >>> import fastlayers.ort as ort
    >>> ort.InferenceSession("missing.onnx")
    Traceback (most recent call last):
        ...
    fastlayers.ort._errors.NoSuchFile: [ONNXRuntimeError] : 3 : NO_SUCHFILE : Load model from missing.onnx failed:...
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[Any, Any]]] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        _known(kwargs)
        super().__init__(enable_fallback=int(kwargs.get("enable_fallback", 1)) == 1)
        self._model_path: str | None = None
        self._model_bytes: bytes | None = None
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path = os.fspath(path_or_bytes)
        elif isinstance(path_or_bytes, bytes):
            self._model_bytes = path_or_bytes
        else:
            raise DTypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._sess_options_initial = sess_options
        self._read_config_from_model = False
        self._fallback_providers = [CPU]
        self._create_inference_session(providers, provider_options, kwargs.get("disabled_optimizers"))

    def _create_inference_session(self, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
        options = self._sess_options_initial
        if options is None:
            options = SessionOptions()
        source: Any = self._model_bytes if self._model_path is None else self._model_path
        if self._model_path == "":
            raise DTypeError("InferenceSession: incompatible constructor arguments: the path is empty")
        names, given = self._allowed(providers, provider_options)
        if names and isinstance(options, SessionOptions) and options.has_providers():
            warnings.warn(
                "Specified 'providers'/'provider_options' when creating InferenceSession but SessionOptions has already been "
                "configured with providers. InferenceSession will only use the providers passed to InferenceSession().",
                stacklevel=3,
            )
        core = Core(options, source, self._model_path is not None, self._read_config_from_model)
        try:
            core.initialize_session(names, given, disabled_optimizers)
        except OrtRuntimeError as error:
            self._fall_back(error, providers)
        self._bind_session(core)

    def _allowed(self, providers: Any, provider_options: Any) -> tuple[list[str], list[dict[str, str]]]:
        try:
            return check_and_normalize_provider_args(providers, provider_options, get_available_providers())
        except ArgumentError as error:
            self._fall_back(error, providers)
            return [], []

    def _fall_back(self, error: Exception, providers: Any) -> None:
        """Says that the processor is taken instead; raises where that is not wanted."""
        if not self._enable_fallback:
            raise error
        print("*************** EP Error ***************")
        print(f"EP Error {error} when using {providers}")
        print(f"Falling back to {self._fallback_providers} and retrying.")
        print("****************************************")
        self.disable_fallback()

    def _bind_session(self, core: Core) -> None:
        self._sess = core
        self._sess_options = core.session_options
        self._inputs_meta, self._outputs_meta = core.inputs_meta, core.outputs_meta
        self._overridable_initializers = core.overridable_initializers
        self._model_meta = core.model_meta
        self._providers, self._provider_options = core.get_providers(), core.get_provider_options()

    def _reset_session(self, providers: Any, provider_options: Any) -> None:
        self._create_inference_session(providers, provider_options)


def _known(given: Mapping[str, Any]) -> None:
    """Raises for an argument that neither onnxruntime reads nor Python would take."""
    for name in given:
        if name in _OTHERS:
            continue
        import inspect
        from difflib import get_close_matches

        from ..model.loading import load

        near = get_close_matches({"session_options": "sess_options"}.get(name, name), _ARGUMENTS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected some of {', '.join(_ARGUMENTS)}"
        if name in inspect.signature(load).parameters:  # somebody tries its options here
            hint = "fastlayers.load has it"
        raise DTypeError(f"InferenceSession.__init__() got an unexpected keyword argument {name!r}: {hint}")
