"""The torch reader on files that torch wrote: every container, dtype and view, against what torch itself made of them."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import DTypeError, FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights

from .build import Entry, npy
from .torch_build import FLOATS, NONE, call, dict_, legacy, named, number, sizes, storage, tensor, text, tuple_, zipped

GOLDENS = Path(__file__).parent.parent / "goldens"
EXPECTED = json.loads((GOLDENS / "torch.json").read_text(encoding="utf-8"))
CASES = {
    "zip": "values",
    "legacy": "values",
    "protocol4": "checkpoint",
    "legacy_protocol5": "net",
    "new_dtypes": "new",
    "module": "net",
    "legacy_module": "net",
    "tensor": "tensor",
    "trace": "trace",
    "frozen": "frozen",
}


def expected(what: str) -> dict[str, np.ndarray]:
    return {
        name: np.frombuffer(bytes.fromhex(data), np.dtype(dtype)).reshape(shape)
        for name, (dtype, shape, data) in EXPECTED[what].items()
    }


def check(weights: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert list(weights) == list(wanted)
    for name, array in wanted.items():
        assert weights[name].dtype == array.dtype and weights[name].shape == array.shape, name
        np.testing.assert_array_equal(weights[name], array, err_msg=name)
        flags = weights[name].flags
        assert flags.c_contiguous and flags.aligned and not flags.writeable, name


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
def test_against_torch(case: str, mmap: bool) -> None:
    check(load_weights(GOLDENS / f"torch_{case}.pt", mmap=mmap, format="torch"), expected(CASES[case]))


def test_script_module_has_its_buffers_and_all_that_is_shared() -> None:
    weights = load_weights(GOLDENS / "torch_script.pt")
    scratch = weights.pop("scratch")  # TorchScript does not keep what is not persistent apart
    assert scratch.tolist() == [0, 1, 2, 3, 4]
    wanted = expected("net")
    check({name: weights[name] for name in wanted}, wanted)
    assert weights.keys() == wanted.keys()
    assert np.shares_memory(weights["tied.weight"], weights["head.weight"])


def test_what_is_not_read_is_one_error_that_names_it() -> None:
    with pytest.raises(UnsupportedError) as caught:
        load_weights(GOLDENS / "torch_refused.pt")
    assert str(caught.value).endswith(
        "tensors of kinds that are not supported: 'sparse' (sparse), 'quantised' (quantized), 'meta' (without data (of the "
        "device meta)), 'conj' (a conjugated or negated view), 'half complex' (of dtype complex32)"
    )


def test_aligned_tensors_are_used_in_place() -> None:
    path = GOLDENS / "torch_zip.pt"
    content = path.read_bytes()
    weights = load_weights(content)
    in_file = np.frombuffer(content, np.uint8)
    assert np.shares_memory(weights["views.base"], in_file)
    assert np.shares_memory(weights["views.base"], weights["views.row"])
    assert not np.shares_memory(weights["views.transposed"], in_file)
    assert not np.shares_memory(weights["widened.bfloat16"], in_file)


def test_weights_go_into_layers() -> None:
    layer = fl.Linear(3, 2)
    weights = load_weights(GOLDENS / "torch_legacy_protocol5.pt")
    layer.load_state_dict({"weight": weights["head.weight"], "bias": weights["head.bias"]})
    x = np.ones((1, 3), np.float32)
    np.testing.assert_allclose(layer(x), x @ weights["head.weight"].T + weights["head.bias"], rtol=1e-6)


def test_load_names_load_weights() -> None:
    for case in ("zip", "legacy"):
        with pytest.raises(UnsupportedError, match=r"is a torch file, which holds weights alone: read them with load_weights"):
            fl.load(GOLDENS / f"torch_{case}.pt")


def test_archives_packed_anew_and_compressed() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(GOLDENS / "torch_zip.pt") as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    content = out.getvalue()
    check(load_weights(content), expected("values"))
    with pytest.raises(LimitError, match="max_bytes=100"):
        load_weights(content, max_bytes=100)


def test_a_record_without_crc() -> None:
    """torch can be told not to compute the CRC of storages, so it is not compared; that of compressed members is."""
    for deflated in (False, True):
        content = zipped(dict_({"a": tensor(storage())}), {}, Entry("x/data/0", FLOATS, deflated, crc=0))
        if deflated:
            with pytest.raises(FormatError, match="damaged"):
                load_weights(content)
        else:
            assert load_weights(content)["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("order", ["little", "big"])
def test_byte_order(order: str) -> None:
    sign = {"little": "<", "big": ">"}[order]
    held = {"0": struct.pack(f"{sign}6f", *range(6)), "1": struct.pack(f"{sign}2H", 0x3F80, 0xC000)}
    value = dict_(
        {
            "a": tensor(storage()),
            "turned": tensor(storage(), (3, 2), (1, 3)),
            "half": tensor(storage("1", 2, "torch.BFloat16Storage"), (2,), (1,)),
        }
    )
    weights = load_weights(zipped(value, held, Entry("x/byteorder", order.encode())))
    assert weights["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and weights["a"].dtype == np.dtype(np.float32)
    assert weights["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert weights["half"].tolist() == [1, -2]
    with pytest.raises(UnsupportedError, match=r"the byte order is b'middle', expected little or big"):
        load_weights(zipped(value, held, Entry("x/byteorder", b"middle")))


def test_views_of_storages_as_old_files_have_them() -> None:
    view = tuple_(text("1"), number(2), number(3))
    weights = load_weights(legacy(dict_({"a": tensor(storage(view=view), (2,), (1,), 1), "b": tensor(storage(view=NONE))})))
    assert weights["a"].tolist() == [3, 4]
    assert weights["b"].tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(FormatError, match="takes 16 bytes, the storage has 12"):
        load_weights(legacy(dict_({"a": tensor(storage(view=view), (4,), (1,))})))
    beyond = tuple_(text("1"), number(4), number(3))
    with pytest.raises(FormatError, match=r"the storage '0' of 6 elements has a view .* that is not within it"):
        load_weights(legacy(dict_({"a": tensor(storage(view=beyond))})))


def test_strings_of_python_2() -> None:
    value = b"}(U\x01a" + tensor(storage()) + b"T\x03\x00\x00\x00\xc3\xa9b" + tensor(storage(), (1,), (1,)) + b"u"
    assert list(load_weights(zipped(value))) == ["a", "éb"]


def test_classes_of_modules_in_legacy_files() -> None:
    """torch wrote each class once, with its source: only the class's name is taken."""
    made = tuple_(text("module"), named("mine.Net"), text("net.py"), text("import os")) + b"Q"
    state = {"_parameters": dict_({"w": tensor(storage(view=NONE))}), "_buffers": b"}", "_modules": dict_({"none": NONE})}
    assert list(load_weights(legacy(made + b")\x81" + dict_(state) + b"b"))) == ["w"]


def test_modules_inside_dicts() -> None:
    state = {
        "_parameters": dict_({"w": tensor(storage()), "bias": NONE}),
        "_buffers": dict_({"kept": tensor(storage(), (1,), (1,)), "scratch": tensor(storage(), (2,), (1,))}),
        "_modules": dict_({}),
        "_non_persistent_buffers_set": call("__builtin__.set", b"](" + text("scratch") + b"e"),
        "other": tensor(storage(), (3,), (1,)),
    }
    value = dict_({"ema": named("mine.Net") + b")\x81" + dict_(state) + b"b", "n": number(3)})
    assert list(load_weights(zipped(value))) == ["ema.w", "ema.kept"]


def test_an_attribute_of_a_tensor() -> None:
    inner = tuple_(storage(), number(0), sizes(6), sizes(1), b"\x89", b"}")

    def made(kind: str, function: str = "torch._utils._rebuild_tensor_v2") -> bytes:
        return call("torch._tensor._rebuild_from_type_v2", named(function), named(kind), inner, dict_({"tag": number(1)}))

    assert load_weights(zipped(dict_({"a": made("torch.nn.parameter.Parameter")})))["a"].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(UnsupportedError, match=r"'a' \(of the class 'mine.Quantized'\)"):
        load_weights(zipped(dict_({"a": made("mine.Quantized")})))
    with pytest.raises(UnsupportedError, match=r"the pickle calls 'os.system'"):
        load_weights(zipped(dict_({"a": made("torch.Tensor", "os.system")})))


def test_keys_that_are_no_strings() -> None:
    pairs = number(3) + tensor(storage()) + NONE + tensor(storage()) + b"\x88" + tensor(storage()) + sizes(1) + number(1)
    assert list(load_weights(zipped(b"}(" + pairs + b"u"))) == ["3", "None", "True"]
    with pytest.raises(UnsupportedError, match="under a key that is a tuple"):
        load_weights(zipped(b"}(" + sizes(1) + tensor(storage()) + b"u"))


def test_two_tensors_of_one_name() -> None:
    with pytest.raises(FormatError, match=r"tensor 'a.b': there are two of this name"):
        load_weights(zipped(dict_({"a": dict_({"b": tensor(storage())}), "a.b": tensor(storage())})))
    with pytest.raises(FormatError, match=r"tensor '1': there are two of this name"):
        load_weights(zipped(b"}(" + number(1) + tensor(storage()) + text("1") + tensor(storage()) + b"u"))


def test_no_tensors() -> None:
    for content in (zipped(dict_({"epoch": number(3)}), {}), legacy(NONE, {})):
        with pytest.raises(FormatError, match="holds no tensors"):
            load_weights(content)


def test_a_torch_archive_that_holds_arrays_of_numpy_as_well() -> None:
    content = zipped(dict_({"a": tensor(storage())}), None, Entry("x/extra.npy", npy(np.ones(2))))
    assert list(load_weights(content)) == ["a"]


def test_format_is_a_string() -> None:
    with pytest.raises(DTypeError):
        load_weights(zipped(dict_({"a": tensor(storage())})), format=b"torch")  # type: ignore[arg-type]


def test_nothing_of_pickle_or_torch_is_imported() -> None:
    script = (
        "import sys, fastlayers, numpy; before = set(sys.modules)\n"
        f"for name in ('zip', 'legacy'): fastlayers.load_weights({str(GOLDENS)!r} + f'/torch_{{name}}.pt')\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    names = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "fastlayers.formats.torch.machine" in names
    assert not {"torch", "pickle", "_pickle", "zipfile", "tarfile", "collections.abc"} & set(names)
