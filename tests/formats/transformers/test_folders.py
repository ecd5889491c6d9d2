"""Folders of checkpoints: how weights are stored, and what is refused. Nothing in a folder is believed or executed."""

from __future__ import annotations

import io
import json
import os
import pickle  # noqa: TID251 - models must survive it; no file is read this way
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import FormatError, LimitError, UnsupportedError
from fastlayers.formats._arrays import BFLOAT16
from fastlayers.formats.budget import Budget
from fastlayers.formats.transformers import FAMILIES, network

from ...each import each
from ...goldens.transformers_cases import CASES, weights
from ..build import safetensors_of
from ..torch_build import dict_, storage, tensor, zipped
from .checkpoints import compare, golden, named, pieces, stored, written


def rewritten(folder: Path, **arrays: Any) -> Path:
    """The checkpoint with other weights (None: without one)."""
    made = {**weights(golden("bert")[1]), **arrays}
    (folder / "model.safetensors").write_bytes(safetensors_of({name: a for name, a in made.items() if a is not None}))
    return folder


def refused(folder: Path, error: type[Exception], *words: str) -> None:
    with pytest.raises(error) as caught:
        fl.load(folder)
    for word in words:
        assert word in str(caught.value)


# ---- storage ---------------------------------------------------------------------------------------------------------------


def test_shards(tmp_path: Path) -> None:
    written(tmp_path)
    arrays = weights(golden("bert")[1])
    names = sorted(arrays)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, inside in files.items():
        (tmp_path / file).write_bytes(safetensors_of({name: arrays[name] for name in inside}))
    places = {name: file for file, inside in files.items() for name in inside}
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    compare("bert", fl.load(tmp_path), golden("bert")[2])
    places[names[0]] = "../model.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    refused(tmp_path, FormatError, "no plain one")


def of_torch(arrays: dict[str, np.ndarray]) -> bytes:
    strides = {name: tuple(step // 4 for step in a.strides) for name, a in arrays.items()}
    made = {name: tensor(storage(name, a.size), a.shape, strides[name]) for name, a in arrays.items()}
    return zipped(dict_(made), {name: a.tobytes() for name, a in arrays.items()})


def test_old_files_of_torch(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    arrays = weights(golden("bert")[1])
    (tmp_path / "pytorch_model.bin").write_bytes(of_torch(arrays))
    compare("bert", fl.load(tmp_path), golden("bert")[2])
    (tmp_path / "pytorch_model.bin").unlink()
    names = sorted(arrays)
    files = {"pytorch_model-00001-of-00002.bin": names[::2], "pytorch_model-00002-of-00002.bin": names[1::2]}
    for file, inside in files.items():
        (tmp_path / file).write_bytes(of_torch({name: arrays[name] for name in inside}))
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {name: file for file, inside in files.items() for name in inside}}))
    compare("bert", fl.load(tmp_path), golden("bert")[2])
    (tmp_path / "pytorch_model-00002-of-00002.bin").write_bytes(b"import os")
    refused(tmp_path, FormatError, "is no file of safetensors or of torch, as ")


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("case", ["llama", "gpt2", "gpt_neox", "bert", "modernbert", "qwen3_moe", "t5"])
def test_weights_of_16_bits_stay_so_with_the_bits_of_float32(tmp_path: Path, case: str, kind: str) -> None:
    content, arrays = stored(weights(golden(case)[1]), kind)
    folders = {name: tmp_path / name for name in ("wide", "half")}
    for name, folder in folders.items():
        folder.mkdir()
        written(folder, case)
        (folder / "model.safetensors").write_bytes(content if name == "half" else safetensors_of(arrays))

    def results(model: fl.Model) -> dict[str, np.ndarray]:
        given = CASES[case].feeds()
        return {"logits": pieces(model, given, (5, 6, 11))} if CASES[case].decodes else named(model, given)

    want = results(fl.load(folders["wide"]))
    half = fl.load(folders["half"])
    half.save(tmp_path / "own.safetensors")
    for model in (half, fl.load(folders["half"], mmap=False), fl.load(tmp_path / "own.safetensors")):
        graph = model._main.whole_graph()
        read = {str(n.inputs[n.op == "Linear"]) for n in graph.nodes if n.op in ("Linear", "Embedding")}
        assert all(graph.constants[name].itemsize == 2 or "relative" in name for name in read)
        for key, array in results(model).items():
            np.testing.assert_array_equal(array, want[key])
    for words in ({"precision": "strict"}, {"weights": "int8"}, {"weights": "bfloat16"}):
        both = [results(fl.load(folder, **words)) for folder in folders.values()]  # type: ignore[arg-type]
        for key, array in both[0].items():
            np.testing.assert_array_equal(both[1][key], array)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_every_family_of_16_bits_has_the_bits_of_float32(tmp_path: Path, kind: str) -> None:
    """The others than those above, in the library's way and in one thread and two."""
    wrong = []
    for case in CASES:
        content, arrays = stored(weights(golden(case)[1]), kind)
        made = []
        for held in (content, safetensors_of(arrays)):
            (written(tmp_path, case) / "model.safetensors").write_bytes(held)
            made.append(fl.load(tmp_path, mmap=False))
        given = CASES[case].feeds()
        for number in (1, 2):
            for model in made:
                model.num_threads = number
            whole, found = (
                pieces(m, given, (5, 6, 11)) if CASES[case].decodes else next(iter(named(m, given).values())) for m in made
            )
            if not np.array_equal(whole, found) or not np.isfinite(found).all():
                wrong.append((case, number, float(np.abs(whole - found).max())))
    assert not wrong


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_memory_of_weights_of_16_bits(tmp_path: Path, kind: str) -> None:
    """Matrices and tables are not counted: they stay in the file, where each word takes two bytes, until they are packed."""
    for case in ("llama", "bert", "gemma3", "smollm3"):
        config, shapes, _ = golden(case)
        arrays = weights(shapes)
        narrow = {
            name: array.astype(np.float16) if kind == "F16" else (array.view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16)
            for name, array in arrays.items()
        }
        budget = Budget(1 << 20, "load")
        budget.narrow = True
        network(config, narrow, budget=budget)
        assert budget.max_bytes - budget.left <= sum(a.nbytes for a in arrays.values() if a.ndim < 2)
        (written(tmp_path, case) / "model.safetensors").write_bytes(stored(arrays, kind)[0])
        model = fl.load(tmp_path)
        held = [array for array in model._graph.constants.values() if array.ndim > 1]
        assert all(array.itemsize == 2 and array.base is not None for array in held if array.size > 1000)
        sizes = {"batch_size": 2, "sequence_length": 3, "past_sequence_length": 4, "past_sequence_length + sequence_length": 7}
        shapes = {spec.name: tuple(sizes[n] if isinstance(n, str) else n for n in spec.shape or ()) for spec in model.inputs}
        assert not [step.step.op for step in model.report(shapes).steps if step.in_numpy]


def _prompt() -> dict[str, np.ndarray]:
    past = {f"past_key_values.{i}.{kind}": np.zeros((2, 2, 0, 6), np.float32) for i in range(2) for kind in ("key", "value")}
    return {**CASES["llama"].feeds(), **past}


def test_old_names_of_norms(tmp_path: Path) -> None:
    arrays = weights(golden("bert")[1])
    old = {n.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): a for n, a in arrays.items()}
    written(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(safetensors_of(old))
    compare("bert", fl.load(tmp_path), golden("bert")[2])


def test_saved_models_and_pickles_give_the_same_bits(tmp_path: Path) -> None:
    model = fl.load(written(tmp_path, "llama"))
    want = named(model, _prompt())
    model.save(tmp_path / "own.safetensors")
    for other in (fl.load(tmp_path / "own.safetensors"), pickle.loads(pickle.dumps(model))):
        assert other.metadata["model_type"] == "llama"
        for key, array in named(other, _prompt()).items():
            np.testing.assert_array_equal(array, want[key])


def test_a_network_of_a_configuration_and_weights() -> None:
    """Without a folder, and of another head than the architecture's."""
    config, shapes, _ = golden("bert words")
    graph = network(config, weights(shapes), head="", budget=Budget(1 << 30, "load"))
    assert [value.name for value in graph.outputs] == ["last_hidden_state"]


def test_a_matrix_of_few_bits_writes_its_own_node() -> None:
    config, shapes, _ = golden("bert")
    arrays: dict[str, Any] = dict(weights(shapes))
    name = "encoder.layer.0.intermediate.dense.weight"

    class Packed:
        shape = arrays[name].shape

        def linear(self, n: Any, x: str, bias: str | None) -> str:
            return str(n.op("Linear", x, n.constant(matrix, "packed"), bias))

    matrix, arrays[name] = arrays[name], Packed()
    graph = network(config, arrays, budget=Budget(1 << 30, "load"))
    assert "packed" in graph.constants and name not in graph.constants


# ---- words -----------------------------------------------------------------------------------------------------------------


@each(
    "words,error,said",
    [
        ({"new_scaling": 2}, UnsupportedError, "new_scaling=2"),
        ({"position_embedding_type": "relative_key"}, UnsupportedError, "position_embedding_type"),
        ({"is_decoder": True}, UnsupportedError, "is_decoder=True"),
        ({"quantization_config": {"bits": 4}}, UnsupportedError, "quantization_config"),
        ({"model_type": "wonder"}, UnsupportedError, "supported are albert, bert"),
        ({"model_type": None}, UnsupportedError, "model_type is None"),
        ({"model_type": ["bert"]}, UnsupportedError, "model_type"),
        ({"architectures": ["BertForNextSentencePrediction"]}, UnsupportedError, "NextSentencePrediction"),
        ({"architectures": "BertModel"}, FormatError, "architectures"),
        ({"hidden_act": "wave"}, UnsupportedError, "the activation is 'wave'"),
        ({"hidden_size": None}, FormatError, "no 'hidden_size'"),
        ({"hidden_size": 40}, FormatError, "expected (61, 40)"),
        ({"hidden_size": "36"}, FormatError, "hidden_size is '36'"),
        ({"hidden_size": True}, FormatError, "hidden_size is True"),
        ({"num_hidden_layers": 3}, FormatError, "has no weight 'encoder.layer.2"),
        ({"num_hidden_layers": 1}, FormatError, "does not know"),
        ({"num_hidden_layers": 1 << 30}, LimitError, "num_hidden_layers"),
        ({"num_attention_heads": 7}, FormatError, "7 heads"),
        ({"layer_norm_eps": float("nan")}, FormatError, "layer_norm_eps"),
        ({"auto_map": {"AutoModel": "modeling.Model"}}, UnsupportedError, "nothing in a folder is executed"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_words_that_are_refused(
    tmp_path_factory: pytest.TempPathFactory, words: dict[str, Any], error: type[Exception], said: str
) -> None:
    refused(written(tmp_path_factory.mktemp("checkpoint"), "bert", **words), error, said)


@each(
    "words,error,said",
    [
        ({"rope_parameters": {"rope_type": "spiral"}}, UnsupportedError, "spiral"),
        ({"rope_parameters": {"rope_type": "default", "twist": 1}}, UnsupportedError, "twist"),
        ({"rope_parameters": {"rope_type": "linear"}}, FormatError, "factor"),
        ({"rope_parameters": {"rope_type": "linear", "factor": -1}}, FormatError, "factor"),
        ({"rope_parameters": {"rope_type": "longrope", "short_factor": [1], "long_factor": [1]}}, FormatError, "short_factor"),
        ({"rope_parameters": [1]}, FormatError, "rope_parameters"),
        ({"head_dim": 1 << 30}, FormatError, "of a head are rotated"),
        ({"head_dim": 7}, FormatError, "of a head are rotated"),
        ({"num_key_value_heads": 4}, FormatError, "6 heads of queries, 4 of keys"),
        ({"architectures": ["LlamaForTokenClassification"]}, UnsupportedError, "TokenClassification"),
        ({"tie_word_embeddings": "yes"}, FormatError, "tie_word_embeddings"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_words_of_decoders_that_are_refused(
    tmp_path_factory: pytest.TempPathFactory, words: dict[str, Any], error: type[Exception], said: str
) -> None:
    refused(written(tmp_path_factory.mktemp("checkpoint"), "llama", **words), error, said)


def test_words_that_change_nothing(tmp_path: Path) -> None:
    words = {
        "torch_dtype": "float32",
        "id2label": {"0": "a"},
        "attention_dropout": 0.5,
        "unheard_of": None,
        "top_k": 5,
        "transformers.js_config": {"dtype": "q4"},
        "use_mrope": False,
    }
    compare("bert", fl.load(written(tmp_path, "bert", **words)), golden("bert")[2])


def test_words_of_older_files(tmp_path: Path) -> None:
    """transformers 4 wrote rope_theta, and rope_scaling with "type"."""
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    words = {"rope_parameters": None, "rope_theta": 5e5, "rope_scaling": {"type": "llama3", **scaling}}
    compare("llama 3", fl.load(written(tmp_path, "llama 3", **words)), golden("llama 3")[2])


def test_words_of_code_on_the_hub(tmp_path: Path) -> None:
    """NomicBERT's own words; code whose network a family is may lie next to them, and is not looked at."""
    config, _, want = golden("nomic_bert")
    own = {"n_embd": 36, "n_head": 6, "n_inner": 53, "n_layer": 2, "n_positions": 40, "layer_norm_epsilon": 1e-12,
           "rotary_emb_base": 1000, "activation_function": "swiglu", "prenorm": False, "rotary_emb_fraction": 1.0}  # fmt: skip
    none = dict.fromkeys(set(config) - {"model_type", "architectures", "vocab_size", "type_vocab_size"})
    code = {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"}
    written(tmp_path, "nomic_bert", **none, **own, auto_map=code)
    (tmp_path / "modeling_hf_nomic_bert.py").write_text("raise SystemExit")
    compare("nomic_bert", fl.load(tmp_path), want)
    refused(written(tmp_path, "nomic_bert", **none, **{**own, "prenorm": True}, auto_map=code), UnsupportedError, "prenorm")
    refused(written(tmp_path, "nomic_bert", auto_map={"AutoModel": "modeling.Other"}), UnsupportedError, "auto_map")


def test_gte_as_on_the_hub(tmp_path: Path) -> None:
    config, shapes, want = golden("gte")
    code = {"AutoModel": "Alibaba-NLP/new-impl--modeling.NewModel"}
    names = {"model_type": "new", "rope_parameters": None, "rope_theta": 160000.0, "auto_map": code}
    compare("gte", fl.load(written(tmp_path, "gte", **names)), want)
    wide = {**config, "rope_parameters": None, "rope_theta": 160000.0, "rope_scaling": {"type": "ntk", "factor": 2.0}}
    graph = network(wide, weights(shapes), budget=Budget(1 << 30, "load"))
    exponents = np.arange(0, 6, 2) / 6
    np.testing.assert_allclose(graph.constants["frequencies"], (320000.0**-exponents) / 2 ** (2 / 6), rtol=1e-6)


# ---- weights ---------------------------------------------------------------------------------------------------------------


def test_weights_that_are_refused(tmp_path: Path) -> None:
    written(tmp_path)
    name = "encoder.layer.1.output.dense.weight"
    refused(rewritten(tmp_path, **{name: None}), FormatError, "has no weight", name, "(36, 53)")
    refused(rewritten(tmp_path, **{name: np.zeros((53, 36), np.float32)}), FormatError, name, "(53, 36)", "(36, 53)")
    refused(rewritten(tmp_path, **{name: np.zeros(36, np.float32)}), FormatError, name)
    refused(rewritten(tmp_path, **{name: np.zeros((36, 53), np.int32)}), FormatError, name, "int32")
    refused(rewritten(tmp_path, extra=np.zeros(3, np.float32)), FormatError, "'extra'")
    table = np.arange(40)[None]
    assert fl.load(rewritten(tmp_path, **{"embeddings.position_ids": table}))  # as older checkpoints have it


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    """They are computed with as they are, without a warning."""
    arrays = {name: np.full_like(array, np.inf) for name, array in weights(golden("gemma3")[1]).items()}
    for array in arrays.values():
        array.view(np.uint32)[...] = 0x7F800001  # a signaling NaN
    (written(tmp_path, "gemma3") / "model.safetensors").write_bytes(safetensors_of(arrays))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(pieces(fl.load(tmp_path), CASES["gemma3"].feeds(), (5, 11))).all()


def test_ids_beyond_the_tables(tmp_path: Path) -> None:
    model = fl.load(written(tmp_path))
    ones = np.ones((1, 41), np.int64)
    with pytest.raises(fl.errors.Error, match="40"):
        model(input_ids=ones, attention_mask=ones, token_type_ids=0 * ones)
    with pytest.raises(fl.errors.Error, match="61"):
        model(input_ids=61 * ones[:, :3], attention_mask=ones[:, :3], token_type_ids=0 * ones[:, :3])


# ---- files -----------------------------------------------------------------------------------------------------------------


def test_folders_without_what_is_needed(tmp_path: Path) -> None:
    refused(tmp_path, FormatError, "without config.json")
    written(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    refused(tmp_path, FormatError, "no weights", "model.safetensors")
    (tmp_path / "model.safetensors").write_bytes(b"")
    refused(tmp_path, FormatError, "empty")
    (tmp_path / "model.safetensors").write_bytes(b"PK\x03\x04" + bytes(99))
    refused(tmp_path, FormatError)


@each(
    "text", ["", "[]", "{", "{} {}", '{"a": 1, "a": 2}', '"x"', "{" + '"a": {' * 40 + "}" * 41, "\ufeff{}", "nul", "[" * 100_000]
)
def test_broken_configurations(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = written(tmp_path_factory.mktemp("checkpoint"))
    (folder / "config.json").write_text(text)
    refused(folder, FormatError, "config.json")


def test_a_configuration_that_is_too_long(tmp_path: Path) -> None:
    written(tmp_path, "bert", transformers_version="x" * (1 << 24))
    refused(tmp_path, FormatError, "config.json", "at most")


def test_brackets_in_strings_are_no_depth(tmp_path: Path) -> None:
    compare("bert", fl.load(written(tmp_path, "bert", transformers_version='\\"' + "[" * 100)), golden("bert")[2])


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_links_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    """Those of a cache lead to its blobs, others nowhere else."""
    folder = tmp_path / "models--a--b" / "snapshots" / "0123"
    (tmp_path / "models--a--b" / "blobs").mkdir(parents=True)
    folder.mkdir(parents=True)
    written(folder)
    blob = tmp_path / "models--a--b" / "blobs" / "f00d"
    (folder / name).rename(blob)
    (folder / name).symlink_to("../../blobs/f00d")
    compare("bert", fl.load(folder), golden("bert")[2])
    blob.rename(tmp_path / "elsewhere")
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / "elsewhere")
    refused(folder, FormatError, "leads out of the folder", name)


def test_code_in_a_folder(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "modeling.py").write_text("raise SystemExit")
    refused(tmp_path, UnsupportedError, "modeling.py", "nothing in a folder is executed")


def test_a_folder_as_another_format(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(FormatError, match="is a folder"):
        fl.load(tmp_path, format="onnx")
    assert fl.load(tmp_path, format="transformers")
    with pytest.raises(FormatError, match="transformers"):
        fl.load(io.BytesIO(b"\x08\x07" + bytes(9)), format="transformers")


@each("name", ["llama", "gpt2", "gpt_neox"])
def test_memory_has_a_limit(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """Memory of weights that are widened or turned counts."""
    config, shapes, _ = golden(name)
    arrays = weights(shapes)
    rough = {key: a.astype(np.float16) for key, a in arrays.items()} if name == "llama" else arrays
    with pytest.raises(LimitError, match=r"weight .*max_bytes"):
        network(config, rough, budget=Budget(20_000, "load"))
    with pytest.raises(LimitError, match="max_bytes"):
        fl.load(written(tmp_path_factory.mktemp("checkpoint"), name), max_bytes=1000)


def test_known_families_are_modules() -> None:
    from fastlayers.formats.transformers import family_of

    for kind in FAMILIES:
        assert callable(family_of({"model_type": kind}, "load").write)


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 1 << 40, 0.5, -2.5, 1e300, "", "x", [], [1], ["full_attention"], {}, {"a": 1}, [[]],
)  # fmt: skip
FEW = ("deberta-v2, v3", "gemma3", "llama 3", "t5")
MORE = ("albert", "bert", "distilbert", "electra", "gemma2", "gpt2", "gpt_neox", "gte", "mixtral", "modernbert", "mpnet",
        "nomic_bert", "olmo2", "phi3, longer", "qwen2", "qwen3", "qwen3_moe", "roberta", "smollm3",
        "stablelm, parallel")  # fmt: skip


@pytest.mark.parametrize("name", [*FEW, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in MORE)])
def test_odd_values_of_every_word(name: str) -> None:
    """Each is taken, or one of our errors; no other exception, and no memory that weights do not confirm."""
    config, shapes, _ = golden(name)
    arrays = weights(shapes)
    scaling = config.get("rope_parameters") or {}
    changed = [{**config, word: odd} for word in config for odd in ODD]
    changed += [{**config, "rope_parameters": {**scaling, word: odd}} for word in scaling for odd in ODD]
    for words in changed:
        try:
            graph = network(words, arrays, budget=Budget(1 << 26, "load"))
        except fl.errors.Error:
            continue
        assert graph.outputs
