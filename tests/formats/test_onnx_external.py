"""Tensors whose data is in files next to the model's: what is read, and that nothing else can be."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import FormatError, LimitError, UnsupportedError
from fastlayers.formats import load_weights
from fastlayers.formats.onnx import external as module
from fastlayers.formats.onnx.proto import Model

from . import onnx_build as ob
from .onnx_build import external, field

DATA = np.arange(8, dtype="<f4")
needs_links = pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="links need privileges here")
WALKS = [pytest.param(True, id="walked", marks=pytest.mark.skipif(not module._CAN_WALK, reason="no dir_fd here")), False]


@pytest.fixture(params=WALKS)
def walk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to open a file below a folder."""
    monkeypatch.setattr(module, "_CAN_WALK", request.param)


def write(folder: Path, *tensors: bytes, data: bytes | None = DATA.tobytes(), name: str = "data.bin") -> Path:
    """A model with these tensors, and a file of data next to it."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / "model.onnx"
    path.write_bytes(ob.model(ob.graph(initializers=tensors)))
    if data is not None:
        target = folder / name
        target.parent.mkdir(exist_ok=True, parents=True)
        target.write_bytes(data)
    return path


def refusal(path: Path, error: type[Exception] = FormatError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        load_weights(path, **options)
    assert "model.onnx: initializer 'w': " in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("walk")
@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", ["data.bin", "below/and below/data.bin", "./data.bin", "a//b.bin", "..data", "é"])
def test_data_below_the_folder_is_read(tmp_path: Path, name: str, mmap: bool) -> None:
    path = write(tmp_path, external((2, 4), "w", location=name), data=DATA.tobytes(), name=name)
    weights = load_weights(path, mmap=mmap)
    assert weights["w"].tolist() == DATA.reshape(2, 4).tolist() and not weights["w"].flags.writeable


@pytest.mark.usefixtures("walk")
def test_a_model_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, external((8,), "w", location="data.bin"))
    monkeypatch.chdir(tmp_path)
    assert load_weights("model.onnx")["w"].tolist() == DATA.tolist()
    assert load_weights(Path("model.onnx"))["w"].tolist() == DATA.tolist()


def test_offset_and_length(tmp_path: Path) -> None:
    packed = [field(13, ob.entry(key, value)) for key, value in (("location", "data.bin"), ("length", "2"))]
    tensors = [
        external((2,), "a", location="data.bin", offset=8, length=8),
        external((2,), "b", location="data.bin", offset=24),
        external((8,), "c", location="data.bin", length=32),
        external((0,), "d", location="data.bin", offset=32),
        external((1,), "e", location="data.bin", offset="", length=""),
        ob.tensor_raw((3,), 22, *packed, field(14, 1), name="f"),
    ]
    weights = load_weights(write(tmp_path, *tensors))
    assert {name: array.tolist() for name, array in weights.items()} == {
        "a": [2, 3],
        "b": [6, 7],
        "c": DATA.tolist(),
        "d": [],
        "e": [0],
        "f": [0, 0, 0],
    }


def test_known_keys_that_say_nothing_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    tensor = external((8,), "w", location="data.bin", checksum="0", basepath="/etc", __class__="x", data_type="9")
    assert load_weights(write(tmp_path, tensor))["w"].tolist() == DATA.tolist()


def test_mapped_data_is_used_in_place_and_each_file_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = np.arange(1 << 18, dtype="<f4")
    tensors = [external((1 << 17,), f"w{i}", location=f"{'./' * i}big", offset=i << 19) for i in range(2)]
    path = write(tmp_path, *tensors, data=big.tobytes(), name="big")
    opened: list[str] = []
    true_open = os.open

    def spy(name: Any, *args: Any, **kwargs: Any) -> int:
        opened.append(os.fspath(name))
        return true_open(name, *args, **kwargs)

    monkeypatch.setattr(os, "open", spy)
    weights = load_weights(path, max_bytes=600_000)
    assert opened.count("big") == 1
    np.testing.assert_array_equal(weights["w1"], big[1 << 17 :])
    with pytest.raises(LimitError):
        load_weights(path, max_bytes=600_000, mmap=False)


def test_many_files_do_not_use_up_the_descriptors(tmp_path: Path) -> None:
    count = 80
    tensors = [external((1,), f"w{i}", location=f"{i}") for i in range(count)]
    path = write(tmp_path, *tensors)
    for i in range(count):
        (tmp_path / str(i)).write_bytes(np.float32(i).tobytes())
    folder = Path("/proc/self/fd")
    before = len(list(folder.iterdir())) if folder.exists() else 0
    model: Model = ob.read(path)
    held = len(list(folder.iterdir())) - before if folder.exists() else 0
    assert held <= module._MOST_MAPPED + 1
    assert [float(model.graph.initializers[f"w{i}"][0]) for i in range(count)] == [float(i) for i in range(count)]


def test_data_of_attributes(tmp_path: Path) -> None:
    value = ob.Tensor(external((8,), "", location="data.bin"))
    path = write(tmp_path)
    path.write_bytes(ob.model(ob.graph([ob.node("Constant", "", "c", value=value)], "", "c")))
    assert load_weights(path)["c"].tolist() == DATA.tolist()


def test_a_model_without_a_folder(tmp_path: Path) -> None:
    path = write(tmp_path, external((8,), "w", location="data.bin"))
    with path.open("rb") as opened:
        for source in (path.read_bytes(), opened):
            with pytest.raises(UnsupportedError, match=r"its data is in another file \('data.bin'\), but .* load it by its path"):
                load_weights(source)


BAD_LOCATIONS = {
    "../data.bin": "leads upwards",
    "a/../../data.bin": "leads upwards",
    "a/../data.bin": "leads upwards",
    "..": "leads upwards",
    "/etc/passwd": "is absolute",
    "//server/share": "is absolute",
    "": "is empty",
    ".": "names no file",
    "a/": "names no file",
    "a\\b": "has a backslash or a null",
    "..\\b": "has a backslash or a null",
    "C:\\b": "has a backslash or a null",
    "a\0b": "has a backslash or a null",
    "a/" * 100 + "b": "has 101 parts",
}


@pytest.mark.usefixtures("walk")
@pytest.mark.parametrize("location", BAD_LOCATIONS)
def test_locations_that_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "data.bin").write_bytes(DATA.tobytes())
    path = write(tmp_path / "model", external((8,), "w", location=location))
    assert BAD_LOCATIONS[location] in refusal(path)


def test_a_location_is_needed(tmp_path: Path) -> None:
    assert "which is empty" in refusal(write(tmp_path, external((8,), "w", offset=0)))


@needs_links
@pytest.mark.usefixtures("walk")
def test_links_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "data.bin").write_bytes(DATA.tobytes())
    model = tmp_path / "model"
    path = write(model, external((8,), "w", location="link"), data=None)
    (model / "link").symlink_to(outside / "data.bin")
    assert "after the symbolic link 'link': links are not followed" in refusal(path)
    (model / "link").unlink()
    (model / "link").symlink_to("model.onnx")
    assert "after the symbolic link 'link'" in refusal(path)
    path = write(model, external((8,), "w", location="folder/data.bin"), data=None)
    (model / "folder").symlink_to(outside)
    assert "after the symbolic link 'folder'" in refusal(path)
    path = write(model, external((8,), "w", location="dangling"), data=None)
    (model / "dangling").symlink_to("nowhere")
    assert "after the symbolic link 'dangling'" in refusal(path)


@needs_links
@pytest.mark.usefixtures("walk")
def test_hard_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(DATA.tobytes())
    path = write(tmp_path / "model", external((8,), "w", location="data.bin"), data=None)
    os.link(tmp_path / "secret", tmp_path / "model" / "data.bin")
    assert "is a hard link (2 names)" in refusal(path)


@needs_links
def test_the_models_own_path_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", external((8,), "w", location="data.bin"))
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    assert load_weights(tmp_path / "alias" / "model.onnx")["w"].tolist() == DATA.tolist()


@pytest.mark.usefixtures("walk")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, external((8,), "w", location="odd"), data=None)
    os.mkfifo(tmp_path / "odd")
    assert "is no regular file" in refusal(path)
    (tmp_path / "odd").unlink()
    (tmp_path / "odd").mkdir()
    assert "is no regular file" in refusal(path)


@pytest.mark.usefixtures("walk")
def test_missing_files(tmp_path: Path) -> None:
    path = write(tmp_path, external((8,), "w", location="gone.bin"))
    assert "external file 'gone.bin' cannot be opened: No such file or directory" in refusal(path)
    path = write(tmp_path, external((8,), "w", location="data.bin/below"))
    assert "external file 'data.bin/below' cannot be opened" in refusal(path)


NUMBERS = {
    "-1": "the offset '-1', expected a whole number",
    "1e3": "the offset '1e3', expected",
    " 8": "the offset ' 8', expected",
    "+8": "the offset '+8', expected",
    "1_0": "the offset '1_0', expected",
    "\u0668": "the offset '\u0668', expected",
    "9" * 30: "expected a whole number",
    "9" * 18: "ends beyond the 32 bytes of file 'data.bin'",
    "1": "external data from 1 to 33 ends beyond the 32 bytes",
    "33": "external data from 33 to 65 ends beyond",
}


@pytest.mark.parametrize("offset", NUMBERS)
def test_offsets_that_are_refused(tmp_path: Path, offset: str) -> None:
    assert NUMBERS[offset] in refusal(write(tmp_path, external((8,), "w", location="data.bin", offset=offset)))


def test_lengths_that_are_refused(tmp_path: Path) -> None:
    for length in ("31", "33", "0", "999999999999999999"):
        text = refusal(write(tmp_path, external((8,), "w", location="data.bin", length=length)))
        assert f"external data has the length {length}, the tensor takes 32 bytes" in text
    assert "the length '-32'" in refusal(write(tmp_path, external((8,), "w", location="data.bin", length="-32")))
    assert "0 to 64 ends beyond the 32 bytes" in refusal(write(tmp_path, external((16,), "w", location="data.bin")))
    assert "0 to 32 ends beyond the 0 bytes" in refusal(write(tmp_path, external((8,), "w", location="data.bin"), data=b""))


def test_contradictions(tmp_path: Path) -> None:
    twice = [field(13, ob.entry("location", name)) for name in ("data.bin", "other.bin")]
    path = write(tmp_path, ob.tensor_raw((8,), 1, *twice, field(14, 1), name="w"))
    assert "external data gives 'location' twice" in refusal(path)
    for content in (field(9, bytes(32)), field(4, bytes(32)), ob.packed(5, [1]), ob.repeated(7, [1]), field(6, "a")):
        tensor = ob.tensor_raw((8,), 1, field(13, ob.entry("location", "data.bin")), field(14, 1), content, name="w")
        assert "has elements in the model and in an external file" in refusal(write(tmp_path, tensor))
    text = ob.tensor_raw((8,), 8, field(13, ob.entry("location", "data.bin")), field(14, 1), name="w")
    assert "its STRING elements are in raw_data" in refusal(write(tmp_path, text))


def test_a_location_without_the_flag_is_not_followed(tmp_path: Path) -> None:
    tensor = ob.tensor_raw((8,), 1, field(13, ob.entry("location", "data.bin")), name="w")
    assert "its FLOAT elements are nowhere" in refusal(write(tmp_path, tensor))


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no /proc here")
    good = write(tmp_path / "good", external((8,), "w", location="a/b/data.bin"), name="a/b/data.bin")
    bad = [
        write(tmp_path / "short", external((9,), "w", location="a/data.bin"), name="a/data.bin"),
        write(tmp_path / "gone", external((8,), "w", location="a/other.bin"), name="a/data.bin"),
    ]
    load_weights(good)
    gc.collect()  # what the tests before left
    before = len(list(folder.iterdir()))
    load_weights(good)
    ob.read(good)
    assert len(list(folder.iterdir())) == before
    for path in bad:
        refusal(path)
    gc.collect()  # tracebacks hold frames
    assert len(list(folder.iterdir())) == before
