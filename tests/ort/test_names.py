"""fastlayers.ort next to the installed onnxruntime: every name is there, with its arguments, values and kinds."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.ort as ort
from fastlayers.ort import _core, _stand_in
from fastlayers.ort._absent import ABSENT
from tests.each import each

from .networks import added

theirs: Any = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.onnxruntime

# What onnxruntime's package has next to its interface: helpers of its own, and modules.
NOT_OURS = {
    "capi", "contextlib", "onnxruntime_validation", "backend", "datasets", "quantization", "tools", "transformers",
}  # fmt: skip
# The compiled module's, next to those: tables of its operators, quantizing weights for kernels of its own, and providers'
# matters.
COMPILED_NOT_OURS = {
    "OrtCompiledModelCompatibility", "OrtDeviceEpIncompatibilityReason", "SessionObjectInitializer", "SparseBlockSparseView",
    "SparseCooView", "SparseCsrView", "get_all_operator_schema", "get_all_opkernel_def", "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes", "get_hardware_device_ep_incompatibility_details", "get_hardware_devices",
    "get_model_compatibility_for_ep_devices", "get_registered_ep_kernel_defs", "get_session_initializer", "opkernel",
    "pack_fp4_weights_for_cuda_moe_gemm", "quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits",
    "quantize_matmul_bnb4", "quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits", "schemadef",
}  # fmt: skip


def public(module: Any) -> set[str]:
    return {name for name in dir(module) if not name.startswith("_")}


def test_every_name_is_there() -> None:
    missing = public(theirs) - NOT_OURS - set(ort.__all__) - set(ort.TOLD)
    assert missing == set()
    assert all(hasattr(ort, name) for name in ort.__all__)
    assert set(ort.__all__) <= set(dir(ort))


@each("name", ort.TOLD)
def test_what_the_module_tells_of_itself(name: str) -> None:
    assert name in dir(ort)
    assert getattr(ort, name) == getattr(theirs, name) == _stand_in._root()[name]


@each("name", sorted(public(theirs) & set(ort.__all__) - set(ABSENT)))
def test_every_attribute_of_a_class_is_there(name: str) -> None:
    given, ours = getattr(theirs, name), getattr(ort, name)
    if not isinstance(given, type):
        assert callable(ours)
        return
    members = getattr(given, "__members__", None)
    instance = next(iter(ours)) if members else ours({}) if name == "OrtArenaCfg" else ours
    assert {attribute for attribute in public(given) if not hasattr(instance, attribute)} == set()


def test_every_name_of_the_compiled_module_is_there() -> None:
    from onnxruntime.capi import onnxruntime_pybind11_state as compiled

    assert public(compiled) - COMPILED_NOT_OURS - set(_stand_in._compiled()) == set()


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_what_cannot_be_had_says_so(name: str) -> None:
    with pytest.raises(fl.UnsupportedError, match=name):
        getattr(ort, name)()
    with pytest.raises(fl.UnsupportedError, match=name):
        getattr(ort, name).read_from_file("x")
    assert isinstance(getattr(ort, name), type)


def test_what_is_elsewhere_is_an_attribute_error_that_says_where() -> None:
    for name in ("quantization", "training"):
        with pytest.raises(AttributeError, match="install onnxruntime itself"):
            getattr(ort, name)
    for name in ("capi", "transformers"):
        with pytest.raises(AttributeError, match=r"after fastlayers.ort.install\(\)"):
            getattr(ort, name)
    with pytest.raises(AttributeError, match="no attribute 'InferenceSesion'"):
        ort.InferenceSesion  # noqa: B018


@pytest.mark.parametrize("name", ["InferenceSession", "IOBinding", "OrtDevice", "OrtValue"])
def test_methods_have_the_same_arguments(name: str) -> None:
    """Names, order, defaults, and what goes by position alone."""
    differing = {}
    for method, function in inspect.getmembers(getattr(theirs, name), callable):
        if method.startswith("_") and method != "__init__":
            continue
        ours = getattr(getattr(ort, name), method, None)
        if ours is None:
            differing[method] = "missing"
            continue
        pairs = [
            [(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values() if p.name != "self"]
            for f in (function, ours)
        ]
        if pairs[0] != pairs[1]:
            differing[method] = str(pairs)
    if name == "OrtDevice":
        differing.pop("__init__")  # made of the compiled module's there
    assert differing == {}


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions"])
def test_options_and_their_defaults(name: str) -> None:
    given, ours = getattr(theirs, name)(), getattr(ort, name)()
    assert public(given) - public(ours) == set()
    for option in public(given):
        value = getattr(given, option)
        if not callable(value):
            mine = getattr(ours, option)
            assert (str(mine), int(mine) if hasattr(mine, "value") else mine) == (
                str(value), int(value) if hasattr(value, "value") else value,
            ), option  # fmt: skip
            assert hasattr(getattr(ort, name), option)  # on the class too


def test_enumerations() -> None:
    for name in public(theirs):
        members = getattr(getattr(theirs, name), "__members__", None)
        if members and name not in ABSENT:
            ours = getattr(ort, name)
            assert {k: int(v) for k, v in ours.__members__.items()} == {k: int(v) for k, v in members.items()}, name
            for key, value in members.items():
                assert (str(ours[key]), repr(ours[key])) == (str(value), repr(value))
                assert ours[key].name == value.name


def test_errors_have_the_names_and_codes() -> None:
    from onnxruntime.capi import onnxruntime_pybind11_state as compiled

    names = [name for name in public(compiled) if inspect.isclass(e := getattr(compiled, name)) and issubclass(e, Exception)]
    assert len(names) > 10
    for name in names:
        ours = getattr(ort, name)
        # Neither is what an except clause for something else would catch.
        assert not issubclass(ours, (ValueError, RuntimeError, TypeError, OSError)) and issubclass(ours, fl.Error)


def test_what_a_session_says_of_a_model(tmp_path: Any) -> None:
    (tmp_path / "m.onnx").write_bytes(added())
    sessions = [package.InferenceSession(str(tmp_path / "m.onnx")) for package in (theirs, ort)]

    def told(session: Any) -> Any:
        meta = session.get_modelmeta()
        sides = [*session.get_inputs(), *session.get_outputs(), *session.get_overridable_initializers()]
        return (
            [(side.name, side.type, side.shape) for side in sides],
            {name: getattr(meta, name) for name in public(meta)},
            session.get_providers(), session.get_provider_options(), session._providers, session._provider_options,
            session._model_path, session.get_session_options().intra_op_num_threads, session.end_profiling(),
            [memory.device_id for memory in session.get_input_memory_infos()],
            [device.ep_name for device in session.get_input_epdevices()],
        )  # fmt: skip

    assert told(sessions[0]) == told(sessions[1])
    kept = {
        name
        for name in vars(sessions[0])
        if not name.startswith(("_captured", "_profiling", "_from_model", "_input_", "_output_m"))
    }
    assert kept <= set(vars(sessions[1]))


def test_the_core_takes_what_the_compiled_session_takes() -> None:
    core = _core.Core(ort.SessionOptions(), added(), False, False)
    core.initialize_session([], [], set())
    x = np.ones((2, 3), np.float32)
    assert core.run(["t"], {"x": x, "s": np.array(3)})[0] == 3
