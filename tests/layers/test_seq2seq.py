"""Encoders with decoders against loops in torch, which try every sequence there is; with and without attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.goldens.seq2seq_cases import CASES, END, HIDDEN, LONGEST, SIZE, SOURCE, START, VOCABULARY, Case

GOLDENS = Path(__file__).parent.parent / "goldens" / "seq2seq.npz"
# torch computed in float64; sums of at most four log-probabilities of float32's.
TOLERANCE = 2e-5


class Attention(fl.Layer):
    """Bahdanau's: score = v tanh(W h + U memory)."""

    def __init__(self) -> None:
        self.query, self.keys = fl.Linear(HIDDEN, 4), fl.Linear(HIDDEN, 4, bias=False)
        self.score = fl.Linear(4, 1, bias=False)

    def forward(self, h: Any, memory: Any, mask: Any) -> Any:
        query, keys, v = self.query(h)[:, None], self.keys(memory), self.score.weight[0]
        return fl.functional.additive_attention(query, keys, memory, scale=v, attn_mask=mask[:, None])[:, 0]


def model_of(case: Case) -> fl.Seq2Seq:
    kind = getattr(fl, case.kind)
    model = fl.Seq2Seq(
        kind(SIZE, HIDDEN, case.layers, batch_first=True),
        kind(SIZE + HIDDEN * case.attention, HIDDEN, case.layers, batch_first=True),
        fl.Linear(HIDDEN, VOCABULARY),
        fl.Embedding(VOCABULARY, SIZE),
        fl.Embedding(SOURCE, SIZE),
        Attention() if case.attention else None,
    )
    model.load_state_dict(case.draw(model.tensor_shapes()))
    return model


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_as_torch(case: Case, variant: str) -> None:
    model, (x, lengths) = model_of(case), case.x()
    with np.load(GOLDENS) as file:
        golden = {name.partition("#")[2]: file[name] for name in file.files if name.startswith(f"{case.label}#")}
    for given in ({"lengths": lengths}, {"mask": np.arange(x.shape[1]) < lengths[:, None]}):
        np.testing.assert_allclose(model(x, case.targets(), **given), golden["forward"], rtol=TOLERANCE, atol=TOLERANCE)
        greedy = model.greedy(x, START, END, LONGEST, **given)
        np.testing.assert_array_equal(greedy.tokens, golden["greedy"][:, : greedy.tokens.shape[1]])
        found = model.beam(x, START, END, LONGEST, VOCABULARY**LONGEST, **given)
        np.testing.assert_array_equal(found.tokens[:, :5], golden["best"])
        np.testing.assert_allclose(found.scores[:, :5], golden["scores"], rtol=TOLERANCE)
        few = model.beam(x, START, END, LONGEST, 3, **given)
        assert (few.scores[:, 0] <= found.scores[:, 0] + 1e-6).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_padding_changes_nothing(case: Case) -> None:
    model, (x, lengths) = model_of(case), case.x()
    together = model.beam(x, START, END, LONGEST, 2, lengths=lengths)
    for j, length in enumerate(lengths):
        alone = model.beam(x[j : j + 1, :length], START, END, LONGEST, 2)
        np.testing.assert_allclose(together.scores[j], alone.scores[0], rtol=1e-6)
        np.testing.assert_array_equal(together.tokens[j, :, : alone.tokens.shape[2]], alone.tokens[0])


def made(**changed: Any) -> Any:
    given: dict[str, Any] = {
        "encoder": fl.GRU(3, 4, batch_first=True), "decoder": fl.GRU(2, 4, batch_first=True),
        "output": fl.Linear(4, 5), "target": fl.Embedding(5, 2),
    }  # fmt: skip
    return fl.Seq2Seq(**{**given, **changed})


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"encoder": fl.Linear(3, 4)}, fl.DTypeError, "Seq2Seq: encoder is of type Linear: expected RNN, GRU or LSTM"),
    (
        {"encoder": fl.GRU(3, 4)},
        fl.ArgumentError,
        r"Seq2Seq: encoder is GRU\(3, 4\): expected one direction and batch_first=True",
    ),
    ({"decoder": fl.GRU(3, 4, batch_first=True, bidirectional=True)}, fl.ArgumentError, "expected one direction"),
    ({"decoder": fl.LSTM(3, 4, batch_first=True)}, fl.ArgumentError, "expected the same kind, layers and units"),
    ({"decoder": fl.GRU(3, 5, batch_first=True)}, fl.ArgumentError, "expected the same kind, layers and units"),
    ({"decoder": fl.GRU(3, 4, 2, batch_first=True)}, fl.ArgumentError, "expected the same kind, layers and units"),
    ({"output": None}, fl.DTypeError, "Seq2Seq: output is of type NoneType: expected a layer"),
    ({"output_context": True}, fl.ArgumentError, "Seq2Seq: output_context is True without attention"),
    ({"output_context": 2}, fl.DTypeError, "Seq2Seq: output_context is 2"),
    ({"attention": 3}, fl.DTypeError, "Seq2Seq: attention is of type int: expected a layer"),
]


@pytest.mark.parametrize(("changed", "kind", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_wrong_arguments(changed: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        made(**changed)


def test_one_load_for_a_whole_search() -> None:
    """A search that runs while weights are replaced keeps those with which it began."""
    model = made()
    shapes = model.tensor_shapes()
    model.load_state_dict({name: np.zeros(shape) for name, shape in shapes.items()})
    settled = model._settled()
    model.load_state_dict({name: np.ones(shape) for name, shape in shapes.items()})
    x = np.ones((1, 3, 3))
    assert settled.greedy(x, 0, 1, 5).scores[0] == pytest.approx(-5 * np.log(5))
    assert settled.encode(x)["state"].sum() == 0 != model.encode(x)["state"].sum()


@pytest.mark.parametrize("kind", [fl.GRU, fl.LSTM], ids=lambda kind: kind.__name__)
def test_the_output_layer_may_read_the_context(kind: Any, variant: str) -> None:
    """Against a loop in numpy around the decoder; compiled as well, and in searches, which take the same steps."""
    rng = np.random.default_rng(0)
    model = fl.Seq2Seq(
        kind(3, HIDDEN, 2, batch_first=True), kind(2 + HIDDEN, HIDDEN, 2, batch_first=True), fl.Linear(2 * HIDDEN, 7),
        fl.Embedding(7, 2), None, Attention(), True,
    )  # fmt: skip
    model.load_state_dict({name: rng.normal(size=shape) for name, shape in model.tensor_shapes().items()})
    x, tokens, lengths = rng.normal(size=(2, 5, 3)).astype(np.float32), np.array([[0, 1, 2], [0, 3, 4]]), np.array([5, 3])
    memory, state = model.encoder(x, lengths=lengths)
    mask, want = np.arange(5) < lengths[:, None], []
    for column in tokens.T:
        context = model.attention((state[0] if kind is fl.LSTM else state)[-1], memory, mask)
        out, state = model.decoder(np.concatenate([model.target(column), context], -1)[:, None], state)
        logits = np.concatenate([out[:, 0], context], -1).astype(np.float64) @ model.output.weight.T + model.output.bias
        want.append(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))
    got = model(x, tokens, lengths)
    np.testing.assert_allclose(got, np.stack(want, 1), rtol=TOLERANCE, atol=TOLERANCE)
    given = fl.graph.Input("x", ("n", "t", 3)), fl.graph.Input("y", ("n", "u"), np.int64), fl.graph.Input("l", ("n",), np.int64)
    np.testing.assert_array_equal(fl.compile(model, *given)(x, tokens, lengths), got)
    first = model.greedy(x, 0, 6, 1, lengths).tokens[:, 0]
    np.testing.assert_array_equal(first, got[:, 0].argmax(-1))
