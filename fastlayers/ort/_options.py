"""SessionOptions and RunOptions: attributes that know their types, and entries by onnxruntime's keys.

What an option does is said in `docs/onnxruntime.md`: some do what they do there; some are about allocators, schedules and
providers that there are not, and change nothing; some cannot be had, and are errors or warnings when a session is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arguments import shown
from ..errors import DTypeError, UnsupportedError
from ._enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from ._errors import Fail, InvalidArgument, OrtRuntimeError
from ._providers import _KNOWN, CPU
from ._values import OrtValue

__all__ = ["Option", "RunOptions", "SessionOptions"]

LONGEST = 1024
# Entries of sessions that are about memory, threads, other providers and onnxruntime's own file format: nothing to do.
_MEANINGLESS = """
    session.disable_prepacking session.use_env_allocators session.use_device_allocator_for_initializers
    session.inter_op.allow_spinning session.intra_op.allow_spinning session.force_spinning_stop session.intra_op_thread_affinities
    session.dynamic_block_base session.debug_layout_transformation session.disable_cpu_ep_fallback session.disable_quant_qdq
    session.disable_double_qdq_remover session.enable_quant_qdq_cleanup session.qdqisint8allowed session.x64quantprecision
    session.disable_aot_function_inlining session.save_model_format session.use_ort_model_bytes_directly
    session.use_ort_model_bytes_for_initializers session.save_external_prepacked_constant_initializers
    session.use_memory_mapped_ort_model session.optimized_model_external_initializers_file_name
    session.optimized_model_external_initializers_min_size_in_bytes session.collect_node_memory_stats_to_file
    session.node_partition_config_file session.record_ep_graph_assignment_info session.disable_model_compile
    session.model_external_initializers_file_folder_path session.partition_intra_op_threads
    session.intra_op_thread_pool_force_spinning session.fail_on_suboptimal_compiled_model
    session.allow_released_opsets_only session.resource_cpu_partitioning_settings
    optimization.enable_gelu_approximation optimization.minimal_build_optimizations optimization.disable_specified_optimizers
    optimization.memory_optimizer_config optimization.enable_memory_probe_recompute_config
    optimization.enable_cast_chain_elimination optimization.recompute_pattern_length
    mlas.enable_gemm_fastmath_arm64_bfloat16 mlas.use_lut_gemm mlas.disable_kleidiai
    ep.context_enable ep.context_file_path ep.context_embed_mode ep.context_node_name_prefix ep.share_ep_contexts
    ep.stop_share_ep_contexts ep.context_model_external_initializers_file_name ep.enable_weightless_ep_context_nodes
    ep.nnapi.partitioning_stop_ops ep.dynamic.workload_type
"""
# Entries that would change results or what is read, with the values that ask for nothing.
_CANNOT = {"session.load_model_format": ("", "ONNX"), "session.set_denormal_as_zero": ("", "0")}
_OF_RUNS = """
    memory.enable_memory_arena_shrinkage disable_synchronize_execution_providers gpu_graph_id qnn.htp_perf_mode
    qnn.htp_perf_mode_post_run qnn.rpc_control_latency qnn.lora_config ep.share_ep_contexts
"""


class Option:
    """An attribute that takes one type, as the attributes of onnxruntime's classes do."""

    def __init__(self, kind: type, default: Any, doc: str = "") -> None:
        self.kind, self.default, self.__doc__ = kind, default, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.owner = name, owner.__name__

    def __get__(self, held: Any, owner: type | None = None) -> Any:
        return self if held is None else held._set.get(self.name, self.default)

    def __set__(self, held: Any, value: Any) -> None:
        held._set[self.name] = self.taken(value)

    def taken(self, value: Any) -> Any:
        """The value as the type of the option."""
        kind = self.kind
        if isinstance(value, kind):
            return int(value) if kind is int else value  # type: ignore[call-overload]
        if kind is bool and (value is None or isinstance(value, (int, np.bool_))):
            return bool(value)
        if kind is int and isinstance(value, np.integer):
            return int(value)
        named = getattr(value, "name", None)  # the same of another package, such as onnxruntime's own
        members = getattr(kind, "__members__", {})
        if type(value).__name__ == kind.__name__ and isinstance(named, str) and named in members:
            return members[named]
        raise DTypeError(
            f"{self.owner}.{self.name}: incompatible function arguments: {shown(value)} is of type {type(value).__name__}: "
            f"expected {kind.__name__}"
        )


class _Entries:
    """Entries by key, common to both kinds of options."""

    __slots__ = ("_entries", "_set")

    _what = ""
    _keys: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._set: dict[str, Any] = {}
        self._entries: dict[str, str] = {}

    def _add(self, key: Any, value: Any) -> None:
        for given in (key, value):
            if not isinstance(given, str):
                raise DTypeError(
                    f"{self._what}: incompatible function arguments: {shown(given)}: expected a key and a value of str"
                )
        if not 0 < len(key) <= LONGEST:
            raise OrtRuntimeError(f"Config key is empty or longer than maximum length {LONGEST}")
        if key not in self._keys:
            from difflib import get_close_matches

            near = get_close_matches(key, sorted(self._keys), 1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            warnings.warn(f"{self._what}: the entry {shown(key)} is not known, and changes nothing{hint}", stacklevel=3)
        self._entries[key] = value

    def _get(self, key: Any) -> str:
        if not isinstance(key, str):
            raise DTypeError(f"{self._what}: incompatible function arguments: {shown(key)}: expected a key of str")
        if key not in self._entries:
            raise OrtRuntimeError(f"{self._what} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions(_Entries):
    """Options of a session, by onnxruntime's names; any other name is an AttributeError, and a wrong type a TypeError.

    >>> import fastlayers.ort as ort
    >>> options = ort.SessionOptions()
    >>> options.intra_op_num_threads = 2
    >>> options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    """

    __slots__ = ("_canceled", "_initializers", "_providers", "_sizes")

    _what = "SessionOptions"
    _keys = frozenset((*_MEANINGLESS.split(), *_CANNOT))

    enable_cpu_mem_arena = Option(bool, True, "Changes nothing.")
    enable_mem_pattern = Option(bool, True, "Changes nothing.")
    enable_mem_reuse = Option(bool, True, "Changes nothing.")
    enable_profiling = Option(bool, False, "Writes a Chrome trace; see `InferenceSession.end_profiling`.")
    execution_mode = Option(ExecutionMode, ExecutionMode.ORT_SEQUENTIAL, "Changes nothing.")
    execution_order = Option(ExecutionOrder, ExecutionOrder.DEFAULT, "Changes nothing.")
    graph_optimization_level = Option(
        GraphOptimizationLevel, GraphOptimizationLevel.ORT_ENABLE_ALL, "ORT_DISABLE_ALL runs the graph as it is written."
    )
    inter_op_num_threads = Option(int, 0, "Changes nothing: nodes run one after the other.")
    intra_op_num_threads = Option(int, 0, "The most threads that one run uses; 0 for the process's limit.")
    log_severity_level = Option(int, -1, "Changes nothing; see `set_default_logger_severity`.")
    log_verbosity_level = Option(int, 0, "Changes nothing.")
    logid = Option(str, "", "Changes nothing.")
    optimized_model_filepath = Option(str, "", "Where the simplified model is written, as a file of fastlayers.")
    profile_file_prefix = Option(str, "onnxruntime_profile_", "How the path of the Chrome trace begins.")
    use_deterministic_compute = Option(bool, False, "Changes nothing: results are the same in every run.")
    use_per_session_threads = Option(bool, True, "False: as many threads as `set_global_thread_pool_sizes` said.")

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}
        self._providers: list[str] = []
        self._canceled = False

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry. One that onnxruntime does not have either is warned of."""
        self._add(key, value)
        if key in _CANNOT and value not in _CANNOT[key]:
            warnings.warn(f"SessionOptions: {key}={shown(value)} cannot be had, and changes nothing", stacklevel=2)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added.

        Raises:
            OrtRuntimeError: there is none of that key.
        """
        return self._get(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a size of inputs and outputs that the model has a name for."""
        self._sizes[Option.taken(_STR, name)] = Option.taken(_INT, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Cannot be had: denotations of axes are not read.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"SessionOptions: sizes by denotation ({shown(denotation)}) are not supported: "
            "add_free_dimension_override_by_name takes the name of a size"
        )

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Gives a weight of the model another value of the same type and shape."""
        if not isinstance(value, OrtValue):
            raise DTypeError(
                f"SessionOptions.add_initializer: {shown(value)} is of type {type(value).__name__}: expected OrtValue"
            )
        self._initializers[Option.taken(_STR, name)] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """As `add_initializer`, for weights whose file is there; those of a file that is not cannot be given."""
        if not isinstance(names, list) or not isinstance(values, list) or len(names) != len(values):
            raise DTypeError("SessionOptions.add_external_initializers: expected two lists of the same length")
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(self, *arguments: Any) -> None:
        """Cannot be had.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("SessionOptions: external data in memory is not supported: load the model by its path")

    def register_custom_ops_library(self, path: str) -> None:
        """Cannot be had: operators of one's own are functions of Python here.

        Raises:
            UnsupportedError: always, once the file is there.
            Fail: there is no such file.
        """
        from pathlib import Path

        if not Path(Option.taken(_STR, path)).is_file():
            raise Fail(
                f"Failed to load library {path} with error: {path}: cannot open shared object file: No such file or directory"
            )
        raise UnsupportedError(
            f"SessionOptions: custom operators of a library ({shown(path)}) are not supported: `fastlayers.operator` registers a "
            "function of Python for an operator"
        )

    def add_provider(self, name: str, options: Any) -> None:
        """Names a provider: the processor's is the only one that can be had."""
        if not isinstance(name, str) or not isinstance(options, dict):
            raise DTypeError("SessionOptions.add_provider: incompatible function arguments: expected a str and a dict")
        if name not in _KNOWN:
            raise OrtRuntimeError(f"Unknown Provider Type: {name}")
        if name != CPU:
            raise InvalidArgument(
                f"Failed to add provider of type '{name}' to SessionOptions. Provider configuration is not supported."
            )
        self._providers.append(name)

    def add_provider_for_devices(self, devices: Sequence[Any], options: Any) -> None:
        """Names devices of `get_ep_devices`."""
        for device in devices:
            self.add_provider(device.ep_name, dict(options))

    def has_providers(self) -> bool:
        """Whether a provider was added."""
        return bool(self._providers)

    def set_provider_selection_policy(self, policy: Any) -> None:
        """Changes nothing: whatever is preferred, there is the processor."""

    def set_provider_selection_policy_delegate(self, delegate: Any) -> None:
        """Changes nothing: there is nothing to choose from, and the function is never called."""

    def set_load_cancellation_flag(self, canceled: bool) -> None:
        """Whether making a session with these options is refused."""
        self._canceled = bool(canceled)

    def set_ep_context_data_read_func(self, function: Any) -> None:
        """Cannot be had: there are no compiled models.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("SessionOptions: models that a provider compiled (EPContext) are not supported")

    def clear_ep_context_data_read_func(self) -> None:
        """Changes nothing: there is none."""


class RunOptions(_Entries):
    """Options of one run."""

    __slots__ = ()

    _what = "RunOptions"
    _keys = frozenset(_OF_RUNS.split())

    log_severity_level = Option(int, -1, "Changes nothing.")
    log_verbosity_level = Option(int, 0, "Changes nothing.")
    logid = Option(str, "", "Changes nothing.")
    only_execute_path_to_fetches = Option(bool, False, "Changes nothing: only what the wanted outputs need is run.")
    terminate = Option(bool, False, "While it is True, runs fail: those that begin, and those that go on, in 20 ms or so.")

    def _ask(self) -> None:
        """Ends the run that asks, if it is to end."""
        if self.terminate:
            raise Fail("Exiting due to terminate flag being set to true.")

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry. One that onnxruntime does not have either is warned of."""
        self._add(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added.

        Raises:
            OrtRuntimeError: there is none of that key.
        """
        return self._get(key)

    def add_active_adapter(self, adapter: Any) -> None:
        """Cannot be had, but for None.

        Raises:
            UnsupportedError: for an adapter.
        """
        if adapter is not None:
            raise UnsupportedError("RunOptions: adapters (LoRA) are not supported: merge them into the model")


_STR, _INT = Option(str, ""), Option(int, 0)
for _kind in (_STR, _INT):
    _kind.__set_name__(SessionOptions, "argument")
