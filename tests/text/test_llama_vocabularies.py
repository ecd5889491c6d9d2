"""Vocabularies of llama.cpp's own tests, with the ids that it expects: those of every kind that is read, for all of its texts."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastlayers as fl
from fastlayers.formats.gguf import metadata
from fastlayers.text._vocabulary import vocabulary
from tests.examples.wheels import source_files

pytestmark = pytest.mark.exhaustive  # fetches 77 MB, once

READ = ["bert-bge", "command-r", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "refact", "starcoder"]
REFUSED = ["deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "qwen35"]
SEPARATOR = "\n__ggml_vocab_test__\n"


@pytest.fixture(scope="module")
def files() -> Path:
    return source_files("llama-cpp-python==0.3.36", "vendor/llama.cpp/models", (".gguf", ".gguf.inp", ".gguf.out"))


def test_all_are_known(files: Path) -> None:
    found = {path.name.removeprefix("ggml-vocab-").removesuffix(".gguf.inp") for path in files.glob("*.gguf.inp")}
    assert found == {*READ, *REFUSED}


@pytest.mark.parametrize("name", READ)
def test_ids_are_those_that_llama_cpp_expects(files: Path, name: str) -> None:
    path = files / f"ggml-vocab-{name}.gguf"
    made = vocabulary(metadata(path), name)
    texts = Path(f"{path}.inp").read_text(encoding="utf-8").split(SEPARATOR)
    wanted = [list(map(int, line.split())) for line in Path(f"{path}.out").read_text().split("\n")]
    assert len(texts) == len(wanted) > 40 and sum(map(len, wanted)) > 300
    for text, ids in zip(texts, wanted, strict=True):
        assert made.encode(text, add_special_tokens=False).ids == ids, text


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_by_name(files: Path, name: str) -> None:
    with pytest.raises(fl.UnsupportedError, match=r"tokenizer.ggml.(pre|model) is '"):
        vocabulary(metadata(files / f"ggml-vocab-{name}.gguf"), name)
