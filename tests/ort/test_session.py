"""fastlayers.ort without onnxruntime next to it: what sessions and their options do, and what they say that they cannot."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.ort as ort
from fastlayers.ort import _backend

from . import networks

X = np.arange(6, dtype=np.float32).reshape(2, 3)
S = np.array(5, np.int64)
FEEDS = {"x": X, "s": S}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mmap", "fastlayers.load has it"),
        ("num_threads", "fastlayers.load has it"),
        ("session_options", "did you mean 'sess_options'?"),
        ("provider", "did you mean 'providers'?"),
        ("zzz", "expected some of path_or_bytes, sess_options"),
    ],
)
def test_no_argument_is_swallowed(name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}': ") as caught:
        ort.InferenceSession(networks.added(), **{name: None})
    assert hint in str(caught.value) and isinstance(caught.value, fl.Error)


def test_threads_and_the_level_reach_the_model() -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = ort.InferenceSession(networks.added(), options)._sess._model
    assert model.num_threads == 2 and not model._options.optimize
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert ort.InferenceSession(networks.added(), options)._sess._model._options.optimize
    ort.set_global_thread_pool_sizes(3, 1)
    try:
        assert ort.InferenceSession(networks.added())._sess._model.num_threads == 0
        options.use_per_session_threads = False
        assert ort.InferenceSession(networks.added(), options)._sess._model.num_threads == 3
    finally:
        ort.set_global_thread_pool_sizes(0)
    options.use_per_session_threads, options.intra_op_num_threads = True, -1
    assert ort.InferenceSession(networks.added(), options)._sess._model.num_threads == 0


def test_results_do_not_depend_on_threads() -> None:
    found = []
    for number in (1, 2):
        options = ort.SessionOptions()
        options.intra_op_num_threads = number
        found.append(
            ort.InferenceSession(networks.matmul(), options).run(
                None, {"x": np.ones((70, 300), np.float32), "z": np.full((300, 70), 0.1, np.float32)}
            )[0]
        )
    np.testing.assert_array_equal(*found)


def test_the_optimized_model_is_written(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "written.safetensors")
    want = ort.InferenceSession(networks.added(), options).run(["y"], FEEDS)[0]
    np.testing.assert_array_equal(ort.InferenceSession(tmp_path / "written.safetensors").run(["y"], FEEDS)[0], want)
    options.optimized_model_filepath = str(tmp_path / "written.onnx")
    with pytest.warns(UserWarning, match="a file of fastlayers .safetensors., not of ONNX"):
        ort.InferenceSession(networks.added(), options)
    np.testing.assert_array_equal(ort.InferenceSession(tmp_path / "written.onnx").run(["y"], FEEDS)[0], want)


def test_options_are_copied_and_pickled() -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 3
    options.add_free_dimension_override_by_name("n", 2)
    for made in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert made.intra_op_num_threads == 3 and made._sizes == {"n": 2}
    session = pickle.loads(pickle.dumps(ort.InferenceSession(networks.added())))
    np.testing.assert_array_equal(session.run(["y"], FEEDS)[0], X + networks.ADDED)


def test_options_that_cannot_be_had_say_so(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    (tmp_path / "ops.so").write_bytes(b"")
    for call in (
        lambda: options.add_free_dimension_override_by_denotation("DATA_BATCH", 1),
        lambda: options.add_external_initializers_from_files_in_memory([], [], []),
        lambda: options.register_custom_ops_library(str(tmp_path / "ops.so")),
        lambda: options.set_ep_context_data_read_func(print),
        lambda: ort.RunOptions().add_active_adapter(object()),
        lambda: ort.set_default_logger_callback(print),
        lambda: ort.register_execution_provider_library("x", "y.so"),
        lambda: ort.InferenceSession(networks.added()).get_provider_graph_assignment_info(),
        lambda: ort.InferenceSession(networks.added()).set_tuning_results([1]),
        lambda: ort.OrtValue.ort_value_from_sparse_tensor(None),
    ):
        with pytest.raises(fl.UnsupportedError, match=r"not supported|there is one provider|without tuning"):
            call()
    with pytest.raises(ort.Fail, match="was not registered"):
        ort.unregister_execution_provider_library("x")
    options.set_load_cancellation_flag(True)
    with pytest.raises(ort.ModelLoadCanceled):
        ort.InferenceSession(networks.added(), options)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("session.disable_prepackin", "1", "not known, and changes nothing: did you mean 'session.disable_prepacking'"),
        ("qqq", "1", "'qqq' is not known, and changes nothing$"),
        ("session.load_model_format", "ORT", "cannot be had, and changes nothing"),
        ("session.set_denormal_as_zero", "1", "cannot be had, and changes nothing"),
    ],
)
def test_entries_that_do_nothing_are_warned_of(key: str, value: str, words: str) -> None:
    with pytest.warns(UserWarning, match=words):
        ort.SessionOptions().add_session_config_entry(key, value)


def test_entries_that_are_known_are_kept() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = ort.SessionOptions()
        for key in ("session.disable_prepacking", "session.intra_op.allow_spinning", "session.load_model_format"):
            options.add_session_config_entry(key, "ONNX" if "format" in key else "1")
        assert options.get_session_config_entry("session.disable_prepacking") == "1"
        run = ort.RunOptions()
        run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        ort.InferenceSession(networks.added(), options).run(None, FEEDS, run)
    with pytest.warns(UserWarning, match="not known"):
        run.add_run_config_entry("shrink", "1")
    with pytest.warns(UserWarning, match="set_seed: random operators draw other values"):
        ort.set_seed(1)
    with pytest.warns(UserWarning, match="set_ep_dynamic_options: .* changes nothing"):
        ort.InferenceSession(networks.added()).set_ep_dynamic_options({"a": "b"})
    with pytest.warns(UserWarning, match=r"has no options \['threads'\]"):
        ort.InferenceSession(networks.added(), providers=[("CPUExecutionProvider", {"threads": 2})])


def test_initializers_that_do_not_fit() -> None:
    for name, array, words in [
        ("q", X[0], "'q' is not one of the model's"),
        ("w", X[0].astype(np.float64), r"is tensor\(double\) of shape \[3\]: expected float32"),
        ("w", X, r"of shape \[2, 3\]: expected float32 of \[3\]"),
    ]:
        options = ort.SessionOptions()
        options.add_external_initializers([name], [ort.OrtValue.ortvalue_from_numpy(array)])
        with pytest.raises(ort.InvalidArgument, match=words):
            ort.InferenceSession(networks.added(), options)
    with pytest.raises(fl.DTypeError, match="expected OrtValue"):
        ort.SessionOptions().add_initializer("w", X[0])  # type: ignore[arg-type]
    with pytest.raises(fl.DTypeError, match="two lists of the same length"):
        ort.SessionOptions().add_external_initializers(["w"], [])


def test_free_sizes_are_held_to() -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 4)
    session = ort.InferenceSession(networks.added(), options)
    assert session.get_inputs()[0].shape == session.get_outputs()[0].shape == [4, 3]
    with pytest.raises(ort.InvalidArgument, match="index: 0 Got: 2 Expected: 4"):
        session.run(None, FEEDS)
    options.add_free_dimension_override_by_name("a", 4)
    alone = ort.InferenceSession(networks.matmul(), options)  # one kernel, which is called without a detour where it can be
    for _ in range(2):
        with pytest.raises(ort.InvalidArgument, match="index: 0 Got: 2 Expected: 4"):
            alone.run(None, {"x": X, "z": X.T.copy()})


def test_models_that_are_not_supported(tmp_path: Path) -> None:
    from tests.formats import onnx_build as onnx

    def model(*nodes: bytes) -> bytes:
        return onnx.model(onnx.graph(nodes, [onnx.value_info("x", (3,))], [onnx.value_info("y", (3,))]))

    for content, error, words in [
        (model(onnx.node("Nope", "x", "y")), ort.InvalidGraph, "No Op registered for Nope with domain_version of"),
        (model(onnx.node("Nope", "x", "y", domain="my")), ort.Fail, r"my:Nope\(-1\) is not a registered function/op"),
        (model(onnx.node("Relu", "q", "y")), ort.InvalidArgument, "not a graph input, initializer, or output of a previous node"),
        (model(onnx.node("Relu", "x", "z")), ort.InvalidGraph, "This is an invalid model"),
        (model(onnx.node("Relu", "x", "y", foo=3)), ort.NotImplemented, "Could not find an implementation"),
    ]:
        with pytest.raises(error, match=words) as caught:
            ort.InferenceSession(content)
        assert isinstance(caught.value.__cause__, fl.Error)
    (tmp_path / "weights.npz").write_bytes(b"PK\x03\x04nothing")
    with pytest.raises(ort.OrtError):
        ort.InferenceSession(tmp_path / "weights.npz")


def test_asynchronous_runs() -> None:
    session = ort.InferenceSession(networks.added())
    done = threading.Event()
    told: list[Any] = []

    def callback(results: Any, user: Any, error: str) -> None:
        told.append((results, user, error))
        done.set()

    for feeds in (FEEDS, {"x": X[0], "s": S}):
        done.clear()
        session.run_async(["y"], feeds, callback, 7)
        assert done.wait(60)
    np.testing.assert_array_equal(told[0][0][0], X + networks.ADDED)
    assert told[0][1:] == (7, "") and told[1][0] == [] and told[1][2].startswith("Invalid rank for input: x")
    with pytest.raises(fl.ArgumentError, match="Required inputs"):
        session.run_async(None, {"x": X}, callback, None)
    with pytest.raises(fl.DTypeError, match="expected a function"):
        session.run_async(None, FEEDS, 5, None)  # type: ignore[arg-type]


def test_sessions_are_shared_by_threads() -> None:
    session = ort.InferenceSession(networks.added())
    wrong: list[Any] = []

    def work(i: int) -> None:
        for k in range(50):
            x = np.full((1 + (i + k) % 5, 3), i, np.float32)
            found, number = session.run(None, {"x": x, "s": np.array(i)})
            if not np.array_equal(found, x + networks.ADDED) or number != i:
                wrong.append((i, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_providers_can_be_set_again() -> None:
    session = ort.InferenceSession(networks.added())
    binding = session.io_binding()
    session.set_providers(["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(fl.ArgumentError, match="the session that created it"):
        session.run_with_iobinding(binding)
    session.disable_fallback()
    with pytest.raises(ort.OrtRuntimeError, match="Unknown Provider Type"), pytest.warns(UserWarning, match="Nope"):
        session.set_providers(["Nope"])
    session.enable_fallback()
    with pytest.raises(fl.UnsupportedError, match="expected an InferenceSession"):
        ort.Session().set_providers([])


def test_vectors_of_values() -> None:
    session = ort.InferenceSession(networks.added())
    feeds = [ort.OrtValue.ortvalue_from_numpy(X), ort.OrtValue.ortvalue_from_numpy(S)]
    fetches: Any = ort.OrtValueVector()
    session.run_with_ortvaluevector(None, ["x", "s"], feeds, ["y"], fetches, [])
    session.run_with_ortvaluevector(ort.RunOptions(), ["x", "s"], feeds, ["y"], fetches, [])
    assert len(fetches) == 1 and len(fetches.to_numpy()) == 1
    np.testing.assert_array_equal(fetches[0], X + networks.ADDED)
    fetches.reserve(3)
    fetches.shrink_to_fit()
    fetches.push_back(feeds[0])
    assert [value.shape() for value in fetches] == [[2, 3], [2, 3]]


def test_the_backend() -> None:
    rep = _backend.prepare(networks.added(), "CPU", intra_op_num_threads=1)
    np.testing.assert_array_equal(rep.run([X, S], log_severity_level=3)[0], X + networks.ADDED)
    assert _backend.prepare(rep) is rep and _backend.is_compatible(None) and not _backend.supports_device("CUDA:0")
    with pytest.raises(fl.ArgumentError, match="2, for"):
        rep.run([X])
    with pytest.raises(fl.ArgumentError, match="Incompatible device"):
        _backend.prepare(networks.added(), "CUDA")
    with pytest.raises(fl.ArgumentError, match="expected a path"):
        _backend.prepare(5)


def test_functions_of_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    log = logging.getLogger("fastlayers")
    before = log.level
    try:
        for severity, level in enumerate((logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)):
            ort.set_default_logger_severity(severity)
            assert log.level == level
    finally:
        log.setLevel(before)
    ort.print_debug_info()
    assert f"fastlayers {fl.__version__}" in capsys.readouterr().out
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    for arena in (ort.OrtArenaCfg(0, -1, 16, -1), ort.OrtArenaCfg({"max_mem": 5})):
        ort.create_and_register_allocator(memory, arena)
        ort.create_and_register_allocator_v2("CPUExecutionProvider", memory, {}, arena)
    assert arena.max_mem == 5  # type: ignore[attr-defined]
    with pytest.raises(fl.DTypeError, match="there is no"):
        ort.OrtArenaCfg({"most": 5})
    (device,) = ort.get_ep_devices()
    options = ort.SessionOptions()
    options.add_provider_for_devices([device], {})
    assert options.has_providers() and device.device.type == ort.OrtHardwareDeviceType.CPU
    with pytest.warns(UserWarning, match="has already been"):
        ort.InferenceSession(networks.added(), options, providers=["CPUExecutionProvider"])


def test_errors_are_pickled() -> None:
    error = pickle.loads(pickle.dumps(ort.InvalidArgument("words")))
    assert str(error) == "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : words" and error.text == "words"
