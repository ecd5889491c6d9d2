"""Files that appear whole or not at all: several writers at once, errors on the way, links, and what is no file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.cli import main
from fastlayers.formats.write import whole

POSIX = os.name == "posix"


def model_of(value: float, size: int = 300) -> fl.Model:
    net = fl.Linear(size, size, bias=False)
    net.load_state_dict({"weight": np.full((size, size), value, np.float32)})
    return fl.compile(net, fl.graph.Input("x", ("n", size)))


def test_threads_and_processes_that_save_to_one_path(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    wrong: list[Any] = []
    models = [model_of(float(i)) for i in range(4)]
    models[0].save(path)
    stop = threading.Event()

    def save(model: fl.Model) -> None:
        for _ in range(15):
            model.save(path)

    def read() -> None:
        while not stop.is_set():
            weight = next(iter(fl.load_weights(path).values()))
            if weight.shape != (300, 300) or len(np.unique(weight)) != 1:
                wrong.append(weight)

    script = (
        "import sys; from tests.formats.test_write import *; model = model_of(float(sys.argv[1]))\n"
        "for _ in range(15): model.save(sys.argv[2])"
    )
    command = [sys.executable, "-c", script]
    others = [subprocess.Popen([*command, str(i), str(path)], cwd=Path(__file__).parents[2]) for i in (5, 6)]
    threads = [threading.Thread(target=save, args=(model,)) for model in models]
    reader = threading.Thread(target=read)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(timeout=120) for other in others] == [0, 0]
    stop.set()
    reader.join()
    assert not wrong
    assert os.listdir(tmp_path) == ["model.safetensors"]


# What `fastlayers.load` and `load_weights` say that they read, and what ONNX Runtime writes.
_KNOWN = ["onnx", "ort", "keras", "h5", "hdf5", "tflite", "pt", "pth", "npz", "npy", "msgpack", "pb", "pkl", "ONNX", "Pt"]


def failing(path: Path) -> None:
    with whole(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_after_an_error_nothing_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(KeyboardInterrupt):
        failing(path)
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        failing(path)
    assert os.listdir(tmp_path) == ["a"] and path.read_bytes() == b"before"


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "model.safetensors"
    model_of(1).save(path)
    before = path.read_bytes()

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device", *arguments[:1] if call == "replace" else ())

    if call == "write":
        monkeypatch.setattr(np, "ascontiguousarray", full)
    else:
        monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left") as caught:
        model_of(2).save(path)
    assert ".part" not in str(caught.value)
    assert os.listdir(tmp_path) == ["model.safetensors"] and path.read_bytes() == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        model_of(1).save(tmp_path / "none" / "model.safetensors")
    assert ".part" not in str(caught.value) and "model.safetensors" in str(caught.value)


@pytest.mark.skipif(not POSIX, reason="written for POSIX")
def test_a_name_of_another_format_is_refused(tmp_path: Path) -> None:
    for ending in _KNOWN:
        with pytest.raises(fl.ArgumentError, match=f"save: .*net.2.{ending}.*file of fastlayers .*ends in .safetensors"):
            model_of(1).save(tmp_path / f"net.2.{ending}")
    assert not [*tmp_path.iterdir()]
    for name in ("net", "net.safetensors", "net.onnx.safetensors", ".onnx", "net.fastlayers", "onnx"):
        model_of(2).save(tmp_path / name)
        assert fl.load(tmp_path / name)(np.ones((1, 300)))[0, 0] == 600, name


def test_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    before = os.umask(0o027)
    try:
        model_of(1).save(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    link.symlink_to("file")
    model_of(2).save(link)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o604
    assert next(iter(fl.load_weights(path).values()))[0, 0] == 2


@pytest.mark.skipif(not POSIX, reason="written for POSIX")
def test_what_is_no_file_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with whole(pipe) as file:
        file.write(b"through")
    reader.join()
    assert read == [b"through"]
    with pytest.raises(IsADirectoryError), whole(tmp_path):
        pass
    with whole("/dev/null") as file:
        file.write(b"away")
    assert Path("/dev/null").is_char_device()


def test_every_writer_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands that write files, with a disk that is full."""
    source = tmp_path / "source.safetensors"
    model_of(1, 10).save(source)
    folder = tmp_path / "out"
    folder.mkdir()
    commands: list[Callable[[], Any]] = [
        lambda: main(["convert", str(source), str(folder / "a.safetensors"), "--shape", "x=1,10"]),
        lambda: main(["convert", str(source), str(folder / "a.npz"), "--arrays"]),
        lambda: main(["convert", str(source), str(folder / "b.safetensors"), "--arrays"]),
        lambda: main(["run", str(source), "--shape", "x=1,10", "-o", str(folder / "a.npz")]),
    ]
    for command in commands:
        assert command() == 0
    done = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(done) == ["a.npz", "a.safetensors", "b.safetensors"]

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for command in commands:
        assert command() != 0
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == done
