"""Linear attention in plain numpy: computed in float64, rounded at the end."""

from __future__ import annotations

import numpy as np

__all__ = ["linear_attention"]


def linear_attention(
    q__btx: np.ndarray,
    k__bty: np.ndarray,
    v__btz: np.ndarray,
    past__bgde: np.ndarray | None,
    gate__btw: np.ndarray | None,
    beta__btv: np.ndarray | None,
    out__bto: np.ndarray,
    state__bgde: np.ndarray,
    scale: float,
) -> None:
    """For each step ``S = gate S``, ``u = beta (v - Sᵀ k)``, ``S = S + k uᵀ``, ``out = scale Sᵀ q``.

    g heads of keys (d values) and values (e) are next to each other in k and v; h / g neighbouring heads of q share a state.

    Args:
        past__bgde: the states before the first step, or None for zeros.
        gate__btw: a factor for each head, or for each row of each head's state; None is 1.
        beta__btv: a number for each head, or one for all; None: u is v.
        state__bgde: takes the states after the last step.
    """
    (b, g, d, e), t = state__bgde.shape, q__btx.shape[1]
    share = q__btx.shape[2] // max(g * d, 1)
    shapes = (q__btx, share, d), (k__bty, 1, d), (v__btz, 1, e)
    q, k, v = (x.astype(np.float64).reshape(b, t, g, heads, width) for x, heads, width in shapes)
    state = np.zeros((b, g, d, e)) if past__bgde is None else past__bgde.astype(np.float64)
    out = np.zeros((b, t, g, share, e))
    with np.errstate(all="ignore"):
        for i in range(t):
            if gate__btw is not None:
                state = state * gate__btw[:, i].astype(np.float64).reshape(b, g, gate__btw.shape[2] // max(g, 1), 1)
            u = v[:, i, :, 0]
            if beta__btv is not None:
                u = beta__btv[:, i, :, None].astype(np.float64) * (u - np.einsum("bgde,bgd->bge", state, k[:, i, :, 0]))
            state = state + k[:, i, :, 0, :, None] * u[:, :, None]
            out[:, i] = np.einsum("bghd,bgde->bghe", q[:, i], state) * np.float64(np.float32(scale))
        out__bto[...] = out.reshape(out__bto.shape)
        state__bgde[...] = state
