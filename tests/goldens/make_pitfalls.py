"""Writes pitfalls.npz: small modules of torch, their state dicts and what they make of their inputs; each is a trap.

Run from the root of the repository: ``python -m tests.goldens.make_pitfalls``; made with torch 2.13.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

from .store import Case, grid, write

CASES: dict[str, Case] = {}


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flat(part)]
    return [] if value is None else [value.detach().float().numpy()]


def case(
    label: str, make: Callable[[], nn.Module], *inputs: Any, run: Callable[..., Any] | None = None, spread: bool = True
) -> None:
    """A module with seeded weights; inputs are shapes, or arrays as they are; `run(module, *inputs)` is what is called."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    module = make().eval()
    state = module.state_dict()
    if spread:
        state = {
            name: torch.from_numpy(grid(rng, tuple(t.shape))).abs() + 0.25
            if name.endswith(("var", "_g", "original0"))
            else torch.from_numpy(grid(rng, tuple(t.shape)))
            if t.dtype == torch.float32
            else t
            for name, t in state.items()
        }
        module.load_state_dict(state)
    given = [grid(rng, x, 1.0) if isinstance(x, tuple) else x for x in inputs]
    tensors = [torch.from_numpy(x) for x in given]
    with torch.no_grad():
        outputs = flat((run or (lambda m, *x: m(*x)))(module, *tensors))
    arrays = {f"state/{name}": [tensor.numpy()] for name, tensor in module.state_dict().items()}
    CASES[label] = {"inputs": given, "outputs": outputs, **arrays}


def recurrent() -> None:
    for kind in ("RNN", "LSTM", "GRU"):
        case(kind, lambda kind=kind: getattr(nn, kind)(4, 4, batch_first=True), (2, 5, 4))
        case(f"{kind} both ways", lambda kind=kind: getattr(nn, kind)(3, 2, 2, bidirectional=True), (4, 2, 3))


def norms() -> None:
    case("BatchNorm2d", lambda: nn.BatchNorm2d(3), (2, 3, 2, 2))
    case("BatchNorm2d bare", lambda: nn.BatchNorm2d(3, affine=False), (2, 3, 2, 2))
    case("LayerNorm", lambda: nn.LayerNorm(6), np.full((2, 6), 0.25, np.float32) + grid(np.random.default_rng(0), (2, 6), 0.05))


def convolutions() -> None:
    case("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 4, 3, 2, 1, (1, 0), groups=2, dilation=(1, 2)), (1, 4, 3, 4))
    case("ConvTranspose1d", lambda: nn.ConvTranspose1d(3, 3, 3, 2, 1), (1, 3, 4))
    case("Conv2d", lambda: nn.Conv2d(3, 3, 3), (1, 3, 5, 4))


def pools() -> None:
    x = (1, 1, 6, 7)
    for name, kwargs in POOLS.items():
        case(name, lambda kwargs=kwargs: nn.AvgPool2d(**kwargs), x)
    case("AvgPool1d overhanging", lambda: nn.AvgPool1d(3, 2, 1, ceil_mode=True), (1, 2, 6))
    case("MaxPool1d overhanging", lambda: nn.MaxPool1d(2, 3, 1, ceil_mode=True), -np.arange(1, 8, dtype=np.float32)[None, None])


POOLS: dict[str, dict[str, Any]] = {
    "AvgPool2d": {"kernel_size": 3, "stride": 2, "padding": 1},
    "AvgPool2d without padding": {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    "AvgPool2d ceil": {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    "AvgPool2d ceil without padding": {
        "kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False
    },
    "AvgPool2d ceil stride 4": {"kernel_size": 2, "stride": 4, "padding": 1, "ceil_mode": True},
}  # fmt: skip


def weight_norms() -> None:
    """Both names that torch has had for length and direction; the old one warns."""
    for old in (True, False):
        norm, name = (weight_norm, "old") if old else (parametrizations.weight_norm, "new")
        case(f"{name} weight_norm Linear", lambda norm=norm: norm(nn.Linear(4, 3)), (2, 4))
        case(f"{name} weight_norm Linear dim 1", lambda norm=norm: norm(nn.Linear(4, 3), dim=1), (2, 4))
        case(f"{name} weight_norm Linear whole", lambda norm=norm: norm(nn.Linear(4, 3), dim=None), (2, 4))
        case(f"{name} weight_norm Conv1d", lambda norm=norm: norm(nn.Conv1d(4, 3, 3)), (2, 4, 6))
        case(f"{name} weight_norm ConvTranspose1d", lambda norm=norm: norm(nn.ConvTranspose1d(4, 4, 3)), (2, 4, 5))
        case(f"{name} weight_norm LSTM", lambda norm=norm: norm(nn.LSTM(3, 2), "weight_hh_l0"), (4, 2, 3))


def bfloat16() -> None:
    """The bits of a module in bfloat16, and what torch computes with them in float32."""
    torch.manual_seed(0)
    module = nn.Linear(5, 3).bfloat16()
    bits = {name: tensor.detach().view(torch.int16).numpy().view(np.uint16) for name, tensor in module.state_dict().items()}
    x = grid(np.random.default_rng(0), (2, 5))
    y = module.float()(torch.from_numpy(x))
    arrays = {f"state/{name}": [array.astype(np.int64)] for name, array in bits.items()}
    CASES["bfloat16"] = {"inputs": [x], "outputs": flat(y), **arrays}


class Tied(nn.Module):
    """A model of language whose head is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Any) -> Any:
        return self.head(self.embed(ids))


def attention() -> None:
    case("tied", Tied, np.array([[1, 6], [0, 3]]))
    # True at one key that must not be seen, and at a whole row in the second.
    ignored = np.array([[False, True, False], [False, False, False]])
    pairs = np.zeros((3, 3), bool)
    pairs[0, 1:] = pairs[1, 2] = True

    def heads(module: Any, x: Any, ignored: Any, pairs: Any) -> Any:
        return module(x, x, x, key_padding_mask=ignored, attn_mask=pairs)

    case("MultiheadAttention", lambda: nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4), ignored, pairs, run=heads)
    q, k = (2, 3, 4), (2, 5, 4)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    seen = np.ones((3, 5), bool)
    seen[1] = False  # a query that sees nothing
    seen[2, 3:] = False
    case("attention mask", nn.Identity, q, k, k, seen, run=lambda _, q, k, v, m: sdpa(q, k, v, m))
    case("attention causal", nn.Identity, q, k, k, run=lambda _, q, k, v: sdpa(q, k, v, is_causal=True))


def activations() -> None:
    x = np.linspace(-6, 6, 49, dtype=np.float32)
    for name in ("LeakyReLU", "GELU", "SiLU", "Hardsigmoid", "Hardswish", "Softplus"):
        case(name, getattr(nn, name), x)
    case("GELU tanh", lambda: nn.GELU(approximate="tanh"), x)


def main() -> None:
    warnings.simplefilter("ignore", FutureWarning)
    for family in (recurrent, norms, convolutions, pools, weight_norms, bfloat16, attention, activations):
        family()
    write(Path(__file__).with_name("pitfalls.npz"), CASES)


if __name__ == "__main__":
    main()
