"""Makes attention.npz: scaled dot-product attention and batched products of torch 2.13, computed in float64.

Run ``python -m tests.goldens.make_attention`` where torch is installed; seed 0. Boolean masks are stored as 0 and -infinity, as
the kernel takes them. Cases of masks with -1e9 are computed in float32, where a score disappears next to such a number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Attention(NamedTuple):
    """(b, h, q, d) queries against (b, g, k, d) keys and values of e; `mask` names one of `masks`, given in this shape."""

    shape: tuple[int, int, int, int]
    groups: int
    keys: int
    e: int
    mask: str = ""
    mask_shape: tuple[int, ...] = ()
    causal: bool = False
    scale: float | None = None


ATTENTION: tuple[Attention, ...] = (
    Attention((2, 3, 5, 8), 3, 7, 4),
    Attention((1, 1, 67, 8), 1, 131, 4),
    Attention((1, 2, 6, 3), 2, 6, 3, scale=0.7),
    Attention((1, 2, 3, 8), 2, 9, 5, causal=True),
    Attention((1, 2, 20, 8), 2, 9, 8, causal=True),
    Attention((1, 1, 67, 5), 1, 67, 3, causal=True),
    Attention((2, 6, 4, 8), 2, 11, 8),
    Attention((1, 4, 5, 8), 1, 11, 20, causal=True),
    Attention((2, 3, 5, 8), 3, 7, 4, "numbers", (2, 3, 5, 7)),
    Attention((2, 3, 5, 8), 3, 7, 4, "numbers", (5, 7)),
    Attention((2, 3, 5, 8), 3, 7, 4, "numbers", (1, 3, 1, 7)),
    Attention((2, 3, 5, 8), 3, 7, 4, "numbers", (2, 1, 5, 1)),
    Attention((2, 6, 5, 8), 2, 7, 4, "numbers", (1, 6, 5, 7)),
    Attention((1, 3, 5, 8), 3, 70, 4, "boolean", (1, 1, 5, 70)),
    Attention((2, 3, 5, 8), 3, 7, 4, "boolean, a row forbidden", (2, 3, 5, 7)),
    Attention((1, 1, 67, 8), 1, 67, 4, "low triangle", (67, 67)),
    Attention((1, 1, 9, 8), 1, 70, 4, "low everywhere", (9, 70)),
)
# batch of a, batch of b, m, k, n
MATMUL = ((1, 1, 3, 5, 4), (3, 3, 7, 9, 20), (3, 1, 4, 6, 17), (1, 2, 6, 260, 5), (1, 1, 1, 260, 17))


def make() -> dict[str, np.ndarray]:
    """ "<number>.q", ".k", ".v", ".mask" and ".y" for each attention; "matmul.<number>.a", ".b" and ".y"."""
    import torch

    torch.manual_seed(0)
    arrays: dict[str, Any] = {}

    def mask_of(kind: str, shape: tuple[int, ...]) -> Any:
        if kind == "numbers":
            return 2 * torch.randn(shape)
        if kind == "low triangle":
            return torch.triu(torch.full(shape, -1e9), 1)
        if kind == "low everywhere":
            return torch.full(shape, -1e9)
        allowed = torch.rand(shape) < 0.5
        allowed[..., 0] = True
        if "forbidden" in kind:
            allowed[..., 2, :] = False
        return torch.where(allowed, 0.0, -float("inf"))

    for number, case in enumerate(ATTENTION):
        b, _, _, d = case.shape
        q, k, v = (
            torch.randn(shape) for shape in (case.shape, (b, case.groups, case.keys, d), (b, case.groups, case.keys, case.e))
        )
        mask = mask_of(case.mask, case.mask_shape) if case.mask else None
        kind = torch.float32 if "low" in case.mask else torch.float64
        arrays[f"{number}.y"] = torch.nn.functional.scaled_dot_product_attention(
            q.to(kind),
            k.to(kind),
            v.to(kind),
            attn_mask=None if mask is None else mask.to(kind),
            is_causal=case.causal,
            scale=case.scale,
            enable_gqa=case.groups != case.shape[1],
        )
        arrays |= {f"{number}.q": q, f"{number}.k": k, f"{number}.v": v}
        if mask is not None:
            arrays[f"{number}.mask"] = mask.reshape((1,) * (4 - mask.ndim) + tuple(mask.shape))
    for number, (ba, bb, m, n_terms, n) in enumerate(MATMUL):
        a, b = torch.randn(ba, m, n_terms), torch.randn(bb, n_terms, n)
        arrays |= {f"matmul.{number}.{name}": value for name, value in (("a", a), ("b", b), ("y", a.double() @ b.double()))}
    return {name: value.float().numpy() for name, value in arrays.items()}


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("attention.npz"), **make())
