"""Steps of classical models around their products, in numpy."""

from __future__ import annotations

import numpy as np

__all__ = ["grams", "pair_probabilities", "places"]

ROUNDS = 100


def places(x: np.ndarray, keys: np.ndarray, table: np.ndarray, out: np.ndarray, offset: int) -> None:
    """out[i] = the position of x[i] among n ascending keys, and n where it is none of them. All are int64.

    Keys that are close to each other have a table instead of being searched: table[v - offset] is the position of v, or n.
    """
    n, values = len(keys), x.reshape(-1)
    if len(table):
        inside = (values >= offset) & (values < offset + len(table))
        found = np.full(len(values), n)
        found[inside] = table[values[inside] - offset]
    else:
        found = np.searchsorted(keys, values)
        found = np.where(np.append(keys, 0)[found] == values, found, n) if n else np.zeros(len(values), np.int64)
    out[...] = found.reshape(out.shape)


def grams(
    x__ml: np.ndarray,
    first__w: np.ndarray,
    starts__e: np.ndarray,
    symbols__g: np.ndarray,
    nodes__g: np.ndarray,
    columns__v: np.ndarray,
    weight__v: np.ndarray,
    out__mn: np.ndarray,
    samples: int,
    last: bool,
) -> None:
    """out[m, c] = the sum of the weights (`last`: the weight) of sequences of column c that are in row m of x.

    Sequences are a tree of v nodes: first[s] is the node of one that begins with the symbol s, or -1, and node i leads with
    symbols[starts[i] : starts[i + 1]], which ascend, to the nodes of that name. columns[i] is the column of the sequence that
    ends there, or -1. Of those of several symbols, these are every k-th element of a row, for k from 1 to `samples`. A symbol
    that is no position of `first` begins none.

    Args:
        x__ml: int64; trees are int32, weights float32.
    """
    out__mn[...] = 0
    for row, to in zip(x__ml.tolist(), out__mn, strict=True):
        for i, symbol in enumerate(row):
            begin = int(first__w[symbol]) if 0 <= symbol < len(first__w) else -1
            for step in range(1, samples + 1) if begin >= 0 else ():
                node = begin
                for j in range(i, len(row), step):
                    if j > i:
                        a, b = starts__e[node : node + 2]
                        at = np.flatnonzero(symbols__g[a:b] == row[j])
                        if not len(at):
                            break
                        node = int(nodes__g[a + at[0]])
                    column = columns__v[node]
                    if column >= 0 and (j > i or step == 1):
                        to[column] = weight__v[node] + (0 if last else to[column])


def pair_probabilities(x__mp: np.ndarray, scale__p: np.ndarray, shift__p: np.ndarray, out__mc: np.ndarray) -> None:
    """out[m] = the probabilities of c classes that agree best with those of their p pairs (0, 1), (0, 2), .. (1, 2), .., which
    are 1 / (1 + exp(x scale + shift)) (Wu, Lin and Weng, 2004). Scale and shift are float64.
    """
    classes, rows = out__mc.shape[1], len(x__mp)
    first, second = np.triu_indices(classes, 1)
    with np.errstate(over="ignore"):
        of_pair = np.clip(1 / (1 + np.exp(x__mp * scale__p + shift__p)), 1e-7, 1 - 1e-7)
    r = np.zeros((rows, classes, classes))
    r[:, first, second], r[:, second, first] = of_pair, 1 - of_pair
    q = -np.swapaxes(r, 1, 2) * r
    each = np.arange(classes)
    q[:, each, each] = (r**2).sum(axis=1)
    p = np.full((rows, classes), 1 / max(classes, 1))
    left = np.arange(rows if classes else 0)
    for _ in range(ROUNDS):
        qp = np.einsum("nij,nj->ni", q[left], p[left])
        pqp = (p[left] * qp).sum(axis=1)
        wrong = np.abs(qp - pqp[:, None]).max(axis=1, initial=0) >= 0.005 / classes if classes else left > left
        left, qp, pqp = left[wrong], qp[wrong], pqp[wrong]
        if not left.size:
            break
        mine = p[left]
        for i in range(classes):
            step = (pqp - qp[:, i]) / q[left, i, i]
            mine[:, i] += step
            grown = 1 + step
            pqp = (pqp + step * (step * q[left, i, i] + 2 * qp[:, i])) / grown**2
            qp = (qp + step[:, None] * q[left, i]) / grown[:, None]
            mine /= grown[:, None]
        p[left] = mine
    out__mc[...] = p
