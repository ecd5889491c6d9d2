"""The demo: the network against its golden, the packaged recording's segments, and what the command says and returns."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.cli import demo, main, vad

from .wavs import chunk, fmt, wav

GOLDEN = Path(__file__).parents[1] / "goldens" / "silero_vad_16k.npz"
# One segment in the packaged recording: from frame 7 to frame 215, with 30 ms before and after.
START, END = 7 * 512 - 480, 215 * 512 + 480


@pytest.fixture
def spoken() -> np.ndarray:
    return demo.load_recording()


def pcm16(samples: np.ndarray) -> bytes:
    return chunk(b"data", np.round(samples * 32767).astype("<i2").tobytes())


def test_network_agrees_with_the_golden(variant: str) -> None:
    golden = np.load(GOLDEN)
    net = demo.load_network()
    state, found = net.initial(), []
    for window in golden["in_frames"]:
        probability, state = net(window[None], state)
        found.append(probability.item())
    # Float32 sums of at most 387 terms in another order: 2e-7 was seen, and 1e-5 is the promise.
    np.testing.assert_allclose(found, golden["out_0"], rtol=0, atol=1e-5)


def test_network_keeps_nothing_between_calls(spoken: np.ndarray) -> None:
    net = demo.load_network()
    window = next(vad.windows(spoken[20000:]))
    first = net.initial()
    probability, second = net(window, first)
    assert not first.h.any() and not first.c.any()
    kept = second.h.copy(), second.c.copy()
    net(window, second)
    assert net(window, first)[0] == probability
    np.testing.assert_array_equal(second.h, kept[0])
    np.testing.assert_array_equal(second.c, kept[1])


def test_recordings_side_by_side_are_as_alone(spoken: np.ndarray, variant: str) -> None:
    net = demo.load_network()
    parts = [demo.probabilities(net, spoken[start : start + 5120])[0] for start in (0, 30000, 60000)]
    state, found = net.initial(3), []
    for step in zip(*(vad.windows(spoken[start : start + 5120]) for start in (0, 30000, 60000)), strict=True):
        probabilities, state = net(np.concatenate(step), state)
        found.append(probabilities)
    np.testing.assert_allclose(np.transpose(found), parts, rtol=0, atol=0 if variant.startswith("aot") else 1e-6)


def test_network_can_be_recorded(spoken: np.ndarray) -> None:
    net = demo.load_network()
    window, state = next(vad.windows(spoken[20000:])), net.initial()
    probability, (h, c) = net(window, state)
    graph = fl.graph.trace(net, fl.graph.Input("x", window.shape), tuple(state))
    outputs = fl.graph.execute(graph, dict(zip((v.name for v in graph.inputs), (window, *state), strict=True)))
    for found, expected in zip(outputs.values(), (probability, h, c), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 1500])
def test_windows_cover_the_recording(length: int) -> None:
    samples = np.arange(1, length + 1, dtype=np.float32)
    windows = list(vad.windows(samples))
    assert len(windows) == -(-length // 512)
    before = np.zeros((1, 64), np.float32)
    for window in windows:
        assert window.shape == (1, 576)
        np.testing.assert_array_equal(window[:, :64], before)
        before = window[:, -64:]
    joined = np.concatenate([w[0, 64:] for w in windows]) if windows else samples
    np.testing.assert_array_equal(joined[:length], samples)
    assert not joined[length:].any()


def test_packaged_recording(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "61")
    threads = fl.get_num_threads()
    assert main(["demo"]) == 0
    assert fl.get_num_threads() == threads
    head, level, marks, speech, speed, ran = capsys.readouterr().out.splitlines()
    assert head == "the packaged recording (LibriVox, Sense and Sensibility): 7.10 s"
    assert len(level) <= 60
    assert marks == "  " + "━" * 56  # 60 columns of 118 ms; a column counts when half of it is speech
    words = speech.split()
    assert words[0] == "speech"
    frame = 512 / 16000
    assert float(words[1]) == pytest.approx(START / 16000, abs=frame)
    assert float(words[4]) == pytest.approx(END / 16000, abs=frame)
    assert "times faster than real time: 222 frames of 32 ms in " in speed and speed.endswith("one thread")
    assert ran == f"variant={fl.kernels.current()}"


def test_speech_between_silence(spoken: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.wav"
    silence = np.zeros(16000, np.float32)
    path.write_bytes(wav(fmt(), pcm16(np.concatenate([silence, spoken[:48000], silence, spoken[48000:80000], silence]))))
    assert main(["demo", str(path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("speech")]
    assert [float(x) for words in lines for x in (words[1], words[4])] == pytest.approx([1.2, 4.0, 5.0, 7.1], abs=0.25)


def test_threshold_that_nothing_reaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--threshold", "0.9999999"]) == 0
    assert "no speech found" in capsys.readouterr().out


@pytest.mark.parametrize("length", [1, 100, 511, 512, 513])
def test_short_recordings(length: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "short.wav"
    path.write_bytes(wav(fmt(), pcm16(np.ones(length))))
    assert main(["demo", str(path)]) == 0
    out = capsys.readouterr().out
    assert f" {-(-length // 512)} frames of 32 ms" in out
    assert "no speech found" in out


def test_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "silence.wav"
    path.write_bytes(wav(fmt(), pcm16(np.zeros(32000))))
    assert main(["demo", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}: 2.00 s"
    assert lines[1:4] == ["", "", "no speech found"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a WAV file that can be read"),
        (b"ID3 this is music", "not a WAV file"),
        (wav(fmt(), pcm16(np.zeros(0))), "the recording has no samples"),
        (wav(fmt(), pcm16(np.zeros(100)))[:-10], "truncated"),
        (wav(fmt(rate=44100), pcm16(np.zeros(100))), "1 channel(s) at 44100 Hz, expected 1 channel at 16000 Hz"),
        (wav(fmt(channels=2), pcm16(np.zeros(100))), "2 channel(s) at 16000 Hz, expected 1 channel at 16000 Hz"),
        (wav(fmt(6, bits=8), pcm16(np.zeros(100))), "expected integer samples"),
    ],
)
def test_recordings_that_it_refuses(content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    assert main(["demo", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("fastlayers demo: ")
    assert str(path) in captured.err and message in captured.err


@pytest.mark.parametrize("name", ["missing.wav", "."])
def test_files_that_cannot_be_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    assert main(["demo", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"fastlayers demo: {path}: ") and error.count("\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("columns", ["1", "20", "300"])
def test_any_encoding_and_width(encoding: str, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert demo.run(None, 0.5, out) == 0
    out.seek(0)
    level, marks = out.read().splitlines()[1:3]
    assert len(level) <= max(int(columns) - 1, 8) and ("=" in marks) == (encoding != "utf-8")


def test_name_that_the_encoding_lacks(tmp_path: Path) -> None:
    path = tmp_path / "π.wav"
    path.write_bytes(wav(fmt(), pcm16(np.zeros(100))))
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert demo.run(str(path), 0.5, out) == 0


def test_as_a_process() -> None:
    """Piped into a reader that goes away, in a locale without Unicode, from ``python -m fastlayers``."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    with subprocess.Popen(
        [sys.executable, "-m", "fastlayers", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait() == 0
    assert errors == b""
