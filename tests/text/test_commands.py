"""``fastlayers embed`` and ``fastlayers generate``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from fastlayers import cli
from fastlayers.text import Encoder, Generator

from .folders import TEXTS, decoder, sentence_transformer


@pytest.mark.usefixtures("kept_threads")
def test_embed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sentence_transformer(tmp_path / "encoder")
    want = Encoder(folder).encode(TEXTS)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(TEXTS) + "\n"))
    assert cli.main(["embed", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    np.testing.assert_array_equal(np.array([line.split() for line in lines], np.float32), want)
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    assert cli.main(["embed", str(folder), str(tmp_path / "lines.txt"), "--json", "--normalize", "no", "--batch-size", "2"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_array_equal(np.array(rows, np.float32), Encoder(folder).encode(TEXTS, normalize=False))
    assert cli.main(["embed", str(folder), str(tmp_path / "lines.txt"), "-o", str(tmp_path / "out.npy")]) == 0
    assert "10 vectors of 32 values" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), want)
    assert cli.main(["embed", str(folder), str(tmp_path / "lines.txt"), "--prompt", "none"]) == 2
    assert "prompt_name is 'none'" in capsys.readouterr().err


@pytest.mark.usefixtures("kept_threads")
def test_generate(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = decoder(tmp_path)
    made = Generator(folder)
    assert cli.main(["generate", str(folder), "the cat", "--max-tokens", "9"]) == 0
    assert capsys.readouterr().out == made.generate("the cat", 9) + "\n"
    how = ["--temperature", "1.2", "--seed", "4", "--top-p", "0.9", "--stop", "zzz", "--max-tokens", "9"]
    monkeypatch.setattr("sys.stdin", io.StringIO("the dog"))
    assert cli.main(["generate", str(folder), "--json", *how]) == 0
    found = json.loads(capsys.readouterr().out)
    want = made.generate("the dog", 9, 1.2, seed=4, top_p=0.9, stop="zzz", logprobs=0)
    assert (found["text"], found["ids"], found["finish"]) == (want.text, want.ids, want.finish)
    assert cli.main(["generate", str(folder), "why", "--chat", "--system", "be brief", "--max-tokens", "5"]) == 0
    chat = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "why"}]
    assert capsys.readouterr().out == made.generate(chat, 5) + "\n"
    assert cli.main(["generate", str(tmp_path / "none"), "x"]) == 2
