"""The same calls to onnxruntime and to fastlayers.ort: equal results, or errors of the same class with the same words."""

from __future__ import annotations

import builtins
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers.ort as ort

from . import networks

theirs: Any = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.onnxruntime

X = np.arange(6, dtype=np.float32).reshape(2, 3)
S = np.array(5, np.int64)


def kind(error: Exception) -> str:
    """The class of an error of onnxruntime's, or the builtin that it is."""
    if type(error).__name__ in dir(builtins) or type(error).__module__.startswith("onnxruntime"):
        return type(error).__name__
    bases = [base.__name__ for base in type(error).__mro__]
    if "OrtError" in bases:
        return bases[0]
    return next(name for name in bases if name in dir(builtins) and name != "NotImplementedError")


def outcome(call: Callable[[Any], Any], package: Any) -> tuple[str, Any, list[str]]:
    """What a call gives, or its error's class and words; and its warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found: tuple[str, Any] = ("result", call(package))
        except Exception as error:  # whatever comes is what is compared
            found = (kind(error), str(error))
    return (*found, [str(w.message) for w in said])


def equal(want: Any, have: Any) -> None:
    if isinstance(want, np.ndarray):
        assert isinstance(have, np.ndarray) and have.dtype == want.dtype and have.shape == want.shape
        if want.dtype.kind == "f":
            np.testing.assert_allclose(have, want, rtol=1e-6)
        else:
            np.testing.assert_array_equal(have, want)
    elif isinstance(want, (list, tuple)):
        assert len(want) == len(have)
        for w, h in zip(want, have, strict=True):
            equal(w, h)
    else:
        assert have == want


def session(package: Any, **more: Any) -> Any:
    return package.InferenceSession(networks.added(), **more)


def terminated(package: Any) -> Any:
    options = package.RunOptions()
    options.terminate = True
    return session(package).run(None, {"x": X, "s": S}, options)


def overridden(package: Any) -> Any:
    """An initializer that is an input too, in a file of now and in one of before ONNX's IR version 4."""
    found: list[Any] = []
    for ir in (8, 3):
        made = package.InferenceSession(networks.overridable(ir, ("k",)))
        arguments = made.get_overridable_initializers()
        found += [[(arg.name, arg.type, arg.shape) for arg in arguments], [arg.name for arg in made.get_inputs()]]
        found.append(made.run(None, {"x": X, **({"w": np.full(1, 3, "f4")} if arguments else {})}))
    return found


def profile(package: Any, folder: str) -> Any:
    """What a profile has: events of the session, and fields of all and of nodes."""
    options = package.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, folder + "/p"
    made = package.InferenceSession(networks.matmul(), options)
    made.run(None, {"x": X, "z": X.T.copy()})
    events = json.loads(Path(made.end_profiling()).read_text(encoding="utf-8"))
    (node,) = (e for e in events if e["cat"] == "Node" and e["args"].get("op_name") == "MatMul")
    return [e["name"] for e in events if e["cat"] == "Session"], sorted(node), node["ph"], node["args"]


def run(names: Any = None, **feeds: Any) -> Callable[[Any], Any]:
    return lambda package: session(package).run(names, {"x": X, "s": S, **feeds})


RESULTS: dict[str, Callable[[Any], Any]] = {
    "overridden": overridden,
    "all": run(),
    "no names": run([]),
    "one": run(["t"]),
    "the other way round": run(["t", "y"]),
    "a tuple": run(("y",)),
    "an array of a name": run(np.array(["y"])),
    "twice": run(["y", "y"]),
    "a list": run(x=[[1.0, 2.0, 3.0]]),
    "Fortran order": run(x=np.asfortranarray(X)),
    "every other": run(x=np.ones((4, 6), np.float32)[::2, ::2]),
    "no rows": run(x=np.empty((0, 3), np.float32)),
    "read-only": run(x=np.broadcast_to(np.float32(2), (4, 3))),
    "NaN": run(x=np.array([[np.nan, np.inf, -np.inf]], np.float32)),
    "by keyword": lambda p: session(p).run(output_names=["t"], input_feed={"x": X, "s": S}, run_options=p.RunOptions()),
    "values": lambda p: [
        (v.numpy(), v.data_type(), v.shape())
        for v in session(p).run_with_ort_values(
            None, {"x": p.OrtValue.ortvalue_from_numpy(X), "s": p.OrtValue.ortvalue_from_numpy(S)}
        )
    ],
    "a value among arrays": lambda p: session(p).run(None, {"x": p.OrtValue.ortvalue_from_numpy(X), "s": S}),
    "a sequence": lambda p: p.InferenceSession(networks.sequence()).run(None, {"x": X[0]}),
    "types of a sequence": lambda p: [
        (side.type, list(side.shape or ())) for side in p.InferenceSession(networks.sequence()).get_outputs()
    ],
    "an unknown rank": lambda p: p.InferenceSession(networks.unknown()).run(None, {"x": X[0]}),
    "options that change nothing": lambda p: p.InferenceSession(
        networks.added(), disabled_optimizers=["ConstantFolding"], enable_fallback=0
    ).run(None, {"x": X, "s": S}),
    "an empty list of providers": lambda p: session(p, providers=[]).get_providers(),
    "providers twice": lambda p: session(p, providers=["CPUExecutionProvider"] * 2).get_providers(),
    "options of a provider": lambda p: session(
        p, providers=[("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]
    ).get_provider_options(),
    "no version": lambda p: p.InferenceSession(networks.relu()).get_modelmeta().version,
    "memory of a vendor": lambda p: [
        (
            made.name,
            str(made.allocator_type),
            made.device_id,
            made.device_vendor_id,
            int(made.mem_type),
            int(made.device_mem_type),
        )
        for kind in (p.OrtDeviceMemoryType.DEFAULT, p.OrtDeviceMemoryType.HOST_ACCESSIBLE)
        for made in [
            p.OrtMemoryInfo.create_v2(
                "here", p.OrtMemoryInfoDeviceType.CPU, 3, 2, kind, 16, p.OrtAllocatorType.ORT_ARENA_ALLOCATOR
            )
        ]
    ],
    "free sizes": lambda p: free_sizes(p),
    "other weights": lambda p: other_weights(p),
}


def free_sizes(package: Any) -> Any:
    options = package.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    made = session(package, sess_options=options)
    return [side.shape for side in (*made.get_inputs(), *made.get_outputs())], made.run(None, {"x": X, "s": S})


def other_weights(package: Any) -> Any:
    options = package.SessionOptions()
    weights = package.OrtValue.ortvalue_from_numpy(np.array([9, 8, 7], np.float32))
    options.add_initializer("w", weights)
    return session(package, sess_options=options).run(None, {"x": X, "s": S})


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    want, have = outcome(RESULTS[name], theirs), outcome(RESULTS[name], ort)
    assert want[0] == "result", want
    assert have[0] == "result", have
    equal(want[1], have[1])
    assert have[2] == want[2]


def bound(package: Any, *steps: Callable[[Any, Any], Any]) -> Any:
    """Steps on a binding, then a run and its outputs."""
    made = session(package)
    binding = made.io_binding()
    for step in steps:
        step(binding, package)
    made.run_with_iobinding(binding)
    return [v.numpy() for v in binding.get_outputs()], binding.copy_outputs_to_cpu()


def arrays(binding: Any, package: Any) -> None:
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("s", S)


# What a call of ours says is what theirs says, or has these words of it.
ERRORS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an unknown output": (run(["q"]), r"Invalid output name:\s?q"),
    "a weight as output": (run(["w"]), "Invalid output name:w"),
    "a name alone": (run("y"), "incompatible function arguments"),
    "a number as name": (run([1]), "incompatible function arguments"),
    "an unknown input": (run(z=X), "Invalid input name: z"),
    "a weight as input": (run(w=X[0]), "Invalid input name: w"),
    "float64": (
        run(x=X.astype(np.float64)),
        r"Unexpected input data type. Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)",
    ),
    "float64 where one kernel runs": (
        lambda p: p.InferenceSession(networks.relu()).run(None, {"x": X[:1].astype(np.float64)}),
        r"Actual: \(tensor\(double\)\)",
    ),
    "booleans where one kernel runs": (
        lambda p: p.InferenceSession(networks.relu()).run(None, {"x": X[:1] > 0}),
        r"Actual: \(tensor\(bool\)\)",
    ),
    "int32 for int64": (run(s=S.astype(np.int32)), r"Actual: \(tensor\(int32\)\) , expected: \(tensor\(int64\)\)"),
    "texts": (run(x=np.array([["a", "b", "c"]])), r"Actual: \(tensor\(string\)\) , expected: \(tensor\(float\)\)"),
    "another rank": (
        run(x=X[0]),
        "Invalid rank for input: x Got: 1 Expected: 2 Please fix either the inputs/outputs or the model.",
    ),
    "another size": (
        run(x=X[:, :2]),
        "Got invalid dimensions for input: x for the following indices\n index: 1 Got: 2 Expected: 3\n Please fix either the "
        "inputs/outputs or the model.",
    ),
    "several other sizes": (
        lambda p: p.InferenceSession(networks.relu()).run(None, {"x": X[:, :2]}),
        "index: 0 Got: 2 Expected: 1\n index: 1 Got: 2",
    ),
    "a number of Python": (run(s=5), r"Unable to handle object of type <class 'int'>"),
    "a number of numpy": (run(s=np.int64(5)), r"Unable to handle object of type <class 'numpy.int64'>"),
    "nothing": (run(x=None), "Missing Input: x"),
    "a missing input": (
        lambda p: session(p).run(None, {"x": X}),
        r"Required inputs \(\['s'\]\) are missing from input feed \(\['x'\]\)\.",
    ),
    "a list of inputs": (lambda p: session(p).run(None, [X, S]), "'list' object has no attribute 'keys'"),
    "terminated": (terminated, "Exiting due to terminate flag being set to true."),
    "wrong run options": (lambda p: session(p).run(None, {"x": X, "s": S}, 5), "incompatible function arguments"),
    "sizes that do not fit": (
        lambda p: p.InferenceSession(networks.matmul()).run(None, {"x": X, "z": X}),
        "Non-zero status code returned while running",
    ),
    "arrays for values": (lambda p: session(p).run_with_ort_values(None, {"x": X, "s": S}), "no attribute '_get_c_value'"),
    "a value of another rank": (
        lambda p: session(p).run_with_ort_values(
            None, {"x": p.OrtValue.ortvalue_from_numpy(X[0]), "s": p.OrtValue.ortvalue_from_numpy(S)}
        ),
        "Invalid rank for input: x",
    ),
    "no such file": (
        lambda p: p.InferenceSession("missing.onnx"),
        "Load model from missing.onnx failed:Load model missing.onnx failed. File doesn't exist",
    ),
    "a folder": (lambda p: p.InferenceSession("."), "INVALID_PROTOBUF : Load model from . failed:Protobuf parsing failed."),
    "nonsense": (
        lambda p: p.InferenceSession(b"not a model at all"),
        "INVALID_PROTOBUF : Failed to load model because protobuf parsing failed.",
    ),
    "half a model": (lambda p: p.InferenceSession(networks.added()[:90]), "INVALID_PROTOBUF"),
    "no bytes": (lambda p: p.InferenceSession(b""), "INVALID_ARGUMENT : No graph was found in the protobuf."),
    "a number for a model": (lambda p: p.InferenceSession(5), "Unable to load from type '<class 'int'>'"),
    "a bytearray": (lambda p: p.InferenceSession(bytearray(networks.added())), "Unable to load from type '<class 'bytearray'>'"),
    "an empty path": (lambda p: p.InferenceSession(""), "incompatible constructor arguments"),
    "no model": (lambda p: p.InferenceSession(), "missing 1 required positional argument: 'path_or_bytes'"),
    "options of another type": (lambda p: session(p, sess_options=5), "incompatible constructor arguments"),
    "providers of another type": (lambda p: session(p, providers=5), ""),
    "an unknown provider without fallback": (
        lambda p: session(p, providers=["Nope"], enable_fallback=0),
        "Unknown Provider Type: Nope",
    ),
    "lengths without fallback": (
        lambda p: session(p, providers=["CPUExecutionProvider"], provider_options=[], enable_fallback=0),
        "'providers' and 'provider_options' should be the same length if both are given.",
    ),
    "a pair without fallback": (
        lambda p: session(p, providers=[5], enable_fallback=0),
        r"'providers' values must be either strings or \(string, dict\) tuples.",
    ),
    "an option that there is not": (lambda p: setattr(p.SessionOptions(), "num_threads", 1), "has no attribute 'num_threads'"),
    "a text for a number": (
        lambda p: setattr(p.SessionOptions(), "intra_op_num_threads", "2"),
        "incompatible function arguments",
    ),
    "a number for a level": (
        lambda p: setattr(p.SessionOptions(), "graph_optimization_level", 99),
        "incompatible function arguments",
    ),
    "a run option that there is not": (lambda p: setattr(p.RunOptions(), "timeout", 1), "has no attribute 'timeout'"),
    "an entry that was not added": (
        lambda p: p.SessionOptions().get_session_config_entry("a"),
        "SessionOptions does not have configuration with key: a",
    ),
    "an empty key": (
        lambda p: p.SessionOptions().add_session_config_entry("", "1"),
        "Config key is empty or longer than maximum length 1024",
    ),
    "a number as entry": (lambda p: p.SessionOptions().add_session_config_entry("a", 1), "incompatible function arguments"),
    "a provider that there is not": (
        lambda p: p.SessionOptions().add_provider("CUDAExecutionProvider", {}),
        "Failed to add provider of type 'CUDAExecutionProvider'",
    ),
    "a library that there is not": (
        lambda p: p.SessionOptions().register_custom_ops_library("/nope.so"),
        "Failed to load library /nope.so with error",
    ),
    "severity": (lambda p: p.set_default_logger_severity(9), "Invalid logging severity"),
    "a seed that is none": (lambda p: p.set_seed(5.5), "incompatible function arguments"),
    "texts as a value": (
        lambda p: p.OrtValue.ortvalue_from_numpy(np.array(["a"])),
        "Creation of OrtValues is currently only supported from non-string numpy",
    ),
    "a value elsewhere": (lambda p: p.OrtValue.ortvalue_from_numpy(X, "cuda", 0), "Can't allocate memory on the device"),
    "a device that there is not": (lambda p: p.OrtValue.ortvalue_from_numpy(X, "nope", 0), "Unsupported device type: nope"),
    "a value of no type": (lambda p: p.OrtValue.ortvalue_from_shape_and_type([2], "x"), "Not a valid numpy type"),
    "a value of less than nothing": (lambda p: p.OrtValue.ortvalue_from_shape_and_type([-2], np.float32), r"must be >= 0"),
    "bytes of another size": (
        lambda p: p.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(2, np.uint8), 16),
        "Items size in the incoming array: 1 specified by onnxtype: 2",
    ),
    "bfloat16 as an array": (
        lambda p: p.OrtValue.ortvalue_from_shape_and_type([2], 16).numpy(),
        "No corresponding Numpy type for Tensor Type",
    ),
    "a value of a number": (lambda p: p.OrtValue(5), "`Provided ortvalue` needs to be of type"),
    "writing too much": (
        lambda p: p.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(np.ones(5, np.float32)),
        "The input size of numpy arrays does not match the size of the OrtValue.",
    ),
    "binding what there is not": (
        lambda p: bound(p, lambda b, _: b.bind_cpu_input("q", X)),
        "Failed to find NodeArg with name: q",
    ),
    "binding a list": (lambda p: bound(p, lambda b, _: b.bind_cpu_input("x", [1.0])), "Unable to create OrtValue from the given"),
    "binding an address of what there is not": (
        lambda p: bound(p, lambda b, _: b.bind_input("q", "cpu", 0, np.float32, [2, 3], X.ctypes.data)),
        "Failed to find input name in the mapping: q",
    ),
    "an output that there is not": (
        lambda p: bound(p, arrays, lambda b, _: b.bind_output("q")),
        r"Error in execution: Invalid output name:",
    ),
    "no input": (lambda p: bound(p, lambda b, _: b.bind_cpu_input("s", S), lambda b, _: b.bind_output("y")), "Missing Input"),
    "memory of another type": (
        lambda p: bound(p, arrays, lambda b, _: b.bind_output("y", "cpu", 0, np.float64, [2, 3], np.empty(6).ctypes.data)),
        r"Unexpected output data type. Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)",
    ),
    "memory of another shape": (
        lambda p: bound(
            p, arrays, lambda b, q: b.bind_ortvalue_output("y", q.OrtValue.ortvalue_from_shape_and_type([4, 3], np.float32))
        ),
        "the computed output shape for this run",
    ),
    "memory of no type": (
        lambda p: bound(p, lambda b, _: b.bind_output("y", "cpu", 0, None, None, 5)),
        "`element_type` and `shape` are to be provided",
    ),
    "another session's binding": (
        lambda p: session(p).run_with_iobinding(session(p).io_binding()),
        "IOBinding must be used with the session that created it.",
    ),
    "a rank in a binding": (
        lambda p: bound(p, arrays, lambda b, _: b.bind_cpu_input("x", X[0]), lambda b, _: b.bind_output("y")),
        "Error in execution: Invalid rank for input: x Got: 1 Expected: 2",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, words = ERRORS[name]
    want, have = outcome(call, theirs), outcome(call, ort)
    assert want[0] != "result" and have[0] == want[0], (want, have)
    for text in (want[1], have[1]):
        assert re.search(words, text), text
    assert have[1].split(":")[0:3] == want[1].split(":")[0:3] or not want[1].startswith("[ONNXRuntimeError]")


@pytest.mark.parametrize(
    "providers", [["CUDAExecutionProvider"], ["CoreMLExecutionProvider", "CPUExecutionProvider"], ["Nope"], [5]]
)
def test_providers_that_are_not_there(providers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The same warnings and lines, but for the list of what there is: onnxruntime's build has one for Azure too."""
    said = []
    for package in (theirs, ort):
        kind_, found, warned = outcome(lambda p: session(p, providers=providers).get_providers(), package)
        assert (kind_, found) == ("result", ["CPUExecutionProvider"])
        said.append((capsys.readouterr().out, [text.replace("AzureExecutionProvider, ", "") for text in warned]))
    assert said[0] == said[1] and any(said[0])


BINDINGS: dict[str, tuple[Callable[[Any, Any], Any], ...]] = {
    "arrays": (arrays, lambda b, _: b.bind_output("y"), lambda b, _: b.bind_output("t")),
    "order of binding": (arrays, lambda b, _: b.bind_output("t"), lambda b, _: b.bind_output("y")),
    "addresses": (
        lambda b, _: b.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data),
        lambda b, _: b.bind_input("s", "cpu", 0, 7, [], S.ctypes.data),
        lambda b, _: b.bind_output("y"),
    ),
    "values": (
        lambda b, p: b.bind_ortvalue_input("x", p.OrtValue.ortvalue_from_numpy(X)),
        lambda b, p: b.bind_ortvalue_input("s", p.OrtValue.ortvalue_from_numpy(S)),
        lambda b, p: b.bind_ortvalue_output("y", p.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)),
    ),
    "twice": (arrays, lambda b, _: b.bind_output("t"), lambda b, _: b.bind_output("t")),
    "cleared": (
        arrays, lambda b, _: b.bind_output("t"), lambda b, _: b.clear_binding_outputs(), lambda b, _: b.bind_output("y"),
        lambda b, _: b.synchronize_inputs(), lambda b, _: b.synchronize_outputs(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BINDINGS)
def test_bindings(name: str) -> None:
    equal(bound(theirs, *BINDINGS[name]), bound(ort, *BINDINGS[name]))


def test_profiles(tmp_path: Path) -> None:
    """Every event and field of ours is one of theirs, but for the kernels that ran."""
    (theirs_events, their_keys, their_kind, want), (events, keys, kind, told) = (profile(p, str(tmp_path)) for p in (theirs, ort))
    assert set(events) <= set(theirs_events) and keys == their_keys and kind == their_kind
    assert told.keys() - want.keys() == {"kernels"}
    assert [told[key] for key in ("op_name", "provider", "input_type_shape", "output_type_shape", "output_size")] == [
        want[key] for key in ("op_name", "provider", "input_type_shape", "output_type_shape", "output_size")
    ]


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(networks.outside("weights.bin"))
    (tmp_path / "weights.bin").write_bytes(networks.ADDED.tobytes())
    equal(*(package.InferenceSession(path).run(None, {"x": X, "s": S}) for package in (theirs, ort)))
    for call in (lambda p: p.InferenceSession(path.read_bytes()), lambda p: p.InferenceSession(path)):
        (tmp_path / "weights.bin").unlink(missing_ok=True)
        want, have = outcome(call, theirs), outcome(call, ort)
        assert want[0] == have[0] == "Fail"
        assert "External data path validation failed" in want[1] and "External data path validation failed" in have[1]
