"""Writes seq2seq.npz: what torch computes, in float64, for the models of seq2seq_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_seq2seq``; made with torch 2.13. The best sequences are found
without a search: every sequence there is gets its log-probability.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import nn

from .seq2seq_cases import CASES, END, HIDDEN, LONGEST, SIZE, SOURCE, START, VOCABULARY, Case


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.keys = nn.Linear(HIDDEN, 4), nn.Linear(HIDDEN, 4, bias=False)
        self.score = nn.Linear(4, 1, bias=False)

    def forward(self, h: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.score(torch.tanh(self.query(h)[:, None] + self.keys(memory)))[..., 0]
        return (torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)[..., None] * memory).sum(1)


class Model(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        kind = getattr(nn, case.kind)
        self.source, self.target = nn.Embedding(SOURCE, SIZE), nn.Embedding(VOCABULARY, SIZE)
        self.encoder = kind(SIZE, HIDDEN, case.layers, batch_first=True)
        self.decoder = kind(SIZE + HIDDEN * case.attention, HIDDEN, case.layers, batch_first=True)
        self.output = nn.Linear(HIDDEN, VOCABULARY)
        self.attention = Attention() if case.attention else None

    def forward(self, x: torch.Tensor, lengths: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.source(x), lengths, batch_first=True, enforce_sorted=False)
        memory, state = self.encoder(packed)
        memory = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True, total_length=x.shape[1])[0]
        mask = torch.arange(x.shape[1]) < lengths[:, None]
        found = []
        for token in tokens.T:
            seen = self.target(token)
            if self.attention is not None:
                h = state[0] if isinstance(state, tuple) else state
                seen = torch.cat([seen, self.attention(h[-1], memory, mask)], dim=-1)
            out, state = self.decoder(seen[:, None], state)
            found.append(torch.log_softmax(self.output(out[:, 0]), dim=-1))
        return torch.stack(found, dim=1)


def every() -> list[tuple[int, ...]]:
    """All sequences of at most LONGEST tokens, each that ends filled up with END."""
    return [s for s in product(range(VOCABULARY), repeat=LONGEST) if END not in s or set(s[s.index(END) :]) == {END}]


def run(case: Case) -> dict[str, np.ndarray]:
    model = Model(case).double().eval()
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict({name: torch.from_numpy(w) for name, w in case.draw(shapes).items()})
    x, lengths = (torch.from_numpy(a) for a in case.x())
    result = {"forward": model(x, lengths, torch.from_numpy(case.targets())).numpy()}
    sequences, best, scores = np.array(every()), [], []
    for j in range(len(x)):
        n = len(sequences)
        given = torch.from_numpy(np.concatenate([np.full((n, 1), START), sequences[:, :-1]], axis=1))
        logs = model(x[j : j + 1].expand(n, -1), lengths[j : j + 1].expand(n), given).numpy()
        each = np.take_along_axis(logs, sequences[:, :, None], axis=2)[..., 0]
        after = np.cumsum(sequences == END, axis=1) - (sequences == END) > 0  # what follows the first end
        total = np.where(after, 0, each).sum(axis=1)
        order = np.argsort(-total, kind="stable")[:5]
        best.append(sequences[order])
        scores.append(total[order])
    greedy = []
    for j in range(len(x)):
        tokens = [START]
        while len(tokens) <= LONGEST and (len(tokens) == 1 or tokens[-1] != END):
            tokens.append(int(model(x[j : j + 1], lengths[j : j + 1], torch.tensor([tokens]))[0, -1].argmax()))
        greedy.append((tokens[1:] + [END] * LONGEST)[:LONGEST])
    return {**result, "best": np.array(best), "scores": np.array(scores), "greedy": np.array(greedy)}


def main() -> None:
    with torch.no_grad():
        found = {f"{case.label}#{name}": array for case in CASES for name, array in run(case).items()}
    np.savez_compressed(Path(__file__).with_name("seq2seq.npz"), **found)


if __name__ == "__main__":
    main()
