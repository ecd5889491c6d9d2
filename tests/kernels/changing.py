"""Kernels whose memory depends on numbers, while another thread changes these: a program, since a fault ends its process.

Prints how many calls ran to their end and how many found the values out of range; both are right.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import numpy as np

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KINDS, REDUCE, SCATTER, RnnOptions

FAR = 1 << 33
SECONDS = 0.4
Made = tuple[np.ndarray, object, object, Callable[[], None]]  # what changes, its right and its wrong values, and the call


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def gather() -> Made:
    x, i, out = zeros(1, 100, 64), np.zeros(100_000, np.int64), zeros(1, 100_000, 64)
    return i, 0, FAR, lambda: dispatch.kernel("gather")(x, i, out, 4)


def gather_wide() -> Made:  # rows that are cut into pieces
    x, i, out = zeros(1, 4, 1 << 17), np.zeros(64, np.int64), zeros(1, 64, 1 << 17)
    return i, 0, FAR, lambda: dispatch.kernel("gather")(x, i, out, 4)


def embedding() -> Made:
    x, i, out = zeros(100, 64), np.zeros(100_000, np.int64), zeros(100_000, 64)
    return i, 0, FAR, lambda: dispatch.kernel("embedding")(x, i, out)


def tree_log_prob() -> Made:
    tree, b = fl.ClassTree.balanced(64), 100_000
    x, weight, targets, out = zeros(b, 32), zeros(63, 32), np.zeros(b, np.int64), zeros(b)
    rest = tree.starts, tree.points, tree.codes
    return targets, 0, FAR, lambda: dispatch.kernel("tree_log_prob")(x, weight, None, targets, *rest, out)


def roi_align() -> Made:
    x, boxes, images, out = zeros(2, 8, 16, 16), zeros(4000, 4), np.zeros(4000, np.int64), zeros(4000, 8, 4, 4)
    boxes[:] = 0, 0, 15, 15
    plain = 1.0, 0.5, 1.0, 2, REDUCE["mean"], False
    return images, 0, FAR, lambda: dispatch.kernel("roi_align")(x, boxes, images, out, *plain)


def roi_pool() -> Made:
    x, boxes, out = zeros(2, 8, 16, 16), zeros(4000, 5), zeros(4000, 8, 4, 4)
    boxes[:] = 0, 0, 0, 15, 15
    return boxes[:, 0], 0, 1e18, lambda: dispatch.kernel("roi_pool")(x, boxes, out, 1.0, False)


def time_pool() -> Made:
    x, lengths, out = zeros(4000, 20, 64), np.zeros(4000, np.int64), zeros(4000, 64)
    return lengths, 1, FAR, lambda: dispatch.kernel("time_pool")(x, lengths, None, out, REDUCE["mean"], True)


def attention() -> Made:
    q, k, out, lengths = zeros(64, 4, 32, 16), zeros(64, 4, 64, 16), zeros(64, 4, 32, 16), np.ones(64, np.int64)
    plain = 1.0, False, 0, 0, False, False
    return lengths, 1, -FAR, lambda: dispatch.kernel("attention")(q, k, k, None, lengths, out, *plain)


def attention_weights() -> Made:
    x, lengths = zeros(64, 4, 64, 64), np.ones(64, np.int64)
    scores, out = np.empty_like(x), np.empty_like(x)
    return lengths, 1, -FAR, lambda: dispatch.kernel("attention_weights")(x, None, lengths, scores, out, 1.0, False, 0, 0)


def pick() -> Made:
    x, i, out = zeros(100, 64), np.zeros((50_000, 2), np.int64), zeros(50_000, 64)
    return i, 0, FAR, lambda: dispatch.kernel("pick")(x, i, out, (50_000,), (0,), (10, 10), (10, 1), 256)


def scatter() -> Made:
    x, i, updates, out = zeros(100, 1), np.zeros(50_000, np.int64), zeros(50_000, 1), zeros(100, 1)
    where = (50_000,), (0,), (100,), (1,), 4
    return i, 0, FAR, lambda: dispatch.kernel("scatter")(x, i, updates, out, *where, SCATTER["add"], KINDS["float32"])


def one_hot() -> Made:
    i, values, out = np.zeros((5000, 1), np.int64), zeros(2), zeros(5000, 10, 1)
    return i, 0, FAR, lambda: dispatch.kernel("one_hot")(i, values, out, 4)


def reverse_sequence() -> Made:
    x, lengths, out = zeros(4000, 20, 64), np.zeros(4000, np.int64), zeros(4000, 20, 64)
    return lengths, 1, FAR, lambda: dispatch.kernel("reverse_sequence")(x, lengths, out, True, 256)


def rnn(lengths: np.ndarray, wrong: object) -> Made:
    packed = dispatch.kernel("rnn_pack")(zeros(1, 16, 8), zeros(1, 16, 16), None, None, RnnOptions())
    x, out = zeros(200, 200, 8), zeros(200, 200, 16)
    return lengths, 1, wrong, lambda: dispatch.kernel("rnn")(x, packed, None, lengths, out, None, True, False, False)


def rnn_lengths() -> Made:
    return rnn(np.ones(200, np.int32), 1 << 30)


def rnn_mask() -> Made:
    return rnn(np.ones((200, 200), bool), False)


def grid_sample() -> Made:
    x, grid, out = zeros(8, 4, 256), zeros(8, 4000, 2), zeros(8, 4, 4000)
    return grid, 0, 1e30, lambda: dispatch.kernel("grid_sample")(x, grid, out, (16, 16), 2, 1, 0)


MAKERS = (
    gather, gather_wide, embedding, tree_log_prob, roi_align, roi_pool, time_pool, attention, attention_weights, rnn_lengths,
    rnn_mask, grid_sample, pick, scatter, one_hot, reverse_sequence,
)  # fmt: skip


def survived(call: Callable[[], None]) -> bool:
    """Whether a call ran to its end; if not, it has found a number out of range."""
    try:
        call()
    except ShapeError:
        return False
    return True


def main(name: str, variant: str) -> None:
    """Calls the kernel until the time is over."""
    with fl.kernels.use(variant):
        numbers, right, wrong, call = next(maker for maker in MAKERS if maker.__name__ == name)()
        call()
        tail, stop = numbers[-len(numbers) // 8 :], threading.Event()

        def spoil() -> None:
            while not stop.is_set():
                tail[...] = wrong
                tail[...] = right

        thread = threading.Thread(target=spoil)
        thread.start()
        done = refused = 0
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            fine = survived(call)
            done, refused = done + fine, refused + (not fine)
        stop.set()
        thread.join()
    print(done, refused)


if __name__ == "__main__":
    main(*sys.argv[1:])
