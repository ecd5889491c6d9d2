"""How the zoo compares detectors: rows in any order, of which some are decided by last bits."""

from __future__ import annotations

import numpy as np

from .sets import SAME, apart_as_sets, spread

RNG = np.random.default_rng(0)
WANT = {"boxes": RNG.random((20, 4)), "scores": RNG.random(20)}


def changed(row: int, box: float) -> dict[str, np.ndarray]:
    boxes = WANT["boxes"].copy()
    boxes[row] += box
    return {"boxes": boxes, "scores": WANT["scores"]}


def test_the_order_of_rows_is_free_and_their_values_are_not() -> None:
    order = RNG.permutation(20)
    assert apart_as_sets({name: array[order] for name, array in WANT.items()}, WANT, []) == 0
    np.testing.assert_allclose(apart_as_sets(changed(3, 0.01), WANT, []), 0.01)


def test_a_row_may_be_what_last_bits_make_of_it() -> None:
    other = changed(3, 0.2)
    assert apart_as_sets(other, WANT, [WANT, other]) == 0
    assert apart_as_sets(changed(4, 0.2), WANT, [WANT, other]) > 0.1
    np.testing.assert_allclose(apart_as_sets(changed(3, 0.21), WANT, [WANT, other]), 0.01)


def test_a_row_that_is_always_there_must_be_there() -> None:
    twice = {name: array[[0, 0, *range(2, 20)]] for name, array in WANT.items()}
    assert apart_as_sets(twice, WANT, [WANT]) > 0.01
    assert apart_as_sets({name: array[:19] for name, array in WANT.items()}, WANT, [WANT]) == np.inf


def test_images_of_a_batch_are_compared_one_by_one() -> None:
    batch = {name: np.stack([array, array[::-1]]) for name, array in WANT.items()}
    assert apart_as_sets({name: array[::-1] for name, array in batch.items()}, batch, [], batched=True) == 0
    moved = {name: np.stack([array, changed(3, 0.2)[name]]) for name, array in WANT.items()}
    assert apart_as_sets(moved, {name: np.stack([array, array]) for name, array in WANT.items()}, [], batched=True) > 0.1


def test_the_spread_is_of_rows_that_moved_and_never_more_than_the_same_row() -> None:
    assert spread(WANT, [WANT, WANT]) == 0
    np.testing.assert_allclose(spread(WANT, [WANT, changed(3, 4e-4)]), 4e-4)
    assert spread(WANT, [WANT, changed(3, 0.2)]) == SAME


def test_nothing_is_found() -> None:
    nothing = {"boxes": np.zeros((0, 4)), "scores": np.zeros(0)}
    assert apart_as_sets(nothing, nothing, [nothing]) == 0
    assert apart_as_sets(nothing, WANT, [WANT]) == np.inf
