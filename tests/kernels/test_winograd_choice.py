"""`winograd_choice.choose`: that the model says what is known, whatever its constants."""

from __future__ import annotations

import itertools

import pytest

from fastlayers.kernels.winograd_choice import choose


@pytest.mark.parametrize(("size", "channels"), [(56, 64), (28, 128), (14, 256), (112, 32), (224, 64), (28, 512)])
@pytest.mark.parametrize("batch", [1, 8])
def test_large_maps_take_large_tiles(size: int, channels: int, batch: int) -> None:
    assert choose((size, size), channels, channels, batch) == 4


def test_weights_weigh_on_small_maps() -> None:
    """512 -> 512 at 7x7 has 49 pixels for 2.4 million weights: the smaller tile for one image, the larger one for many."""
    assert choose((7, 7), 512, 512, 1) == 2
    assert choose((7, 7), 512, 512, 8) == 4
    assert choose((2, 2), 512, 512, 1) == 0


def test_few_channels_and_nothing_at_all_are_direct() -> None:
    for channels, size in itertools.product((0, 1, 3, 4), (7, 56, 224)):
        assert choose((size, size), channels, 64, 1) == 0
    for channels in (8, 64):
        for size in ((1, 1), (1, 2), (2, 1)):
            assert choose(size, channels, channels, 1) == 0
        assert (
            choose((0, 5), channels, channels, 1) == choose((5, 5), channels, 0, 1) == choose((5, 5), channels, channels, 0) == 0
        )


def test_every_answer_is_a_tile_or_none() -> None:
    sizes, channels = (1, 3, 7, 20, 61), (1, 8, 17, 100, 700)
    answers = {
        choose((h, w), c, o, batch) for h, w, c, o, batch in itertools.product(sizes, sizes, channels, channels, (1, 2, 50))
    }
    assert answers == {0, 2, 4}


def test_rows_and_columns_are_alike() -> None:
    for h, w in ((5, 40), (7, 14), (3, 3)):
        assert choose((h, w), 96, 80, 1) == choose((w, h), 96, 80, 1)
