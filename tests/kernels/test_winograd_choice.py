"""`conv_costs.choose`: that the model says what is known, whatever its constants."""

from __future__ import annotations

import itertools

import pytest

from fastlayers.calls.conv_costs import choose


@pytest.mark.parametrize(("size", "channels"), [(56, 64), (28, 128), (14, 256), (112, 32), (224, 64), (28, 512)])
@pytest.mark.parametrize("depth", [1, 8])
def test_large_maps_take_large_tiles(size: int, channels: int, depth: int) -> None:
    assert choose((depth, size, size), channels, channels) == 4


@pytest.mark.parametrize(
    ("depth", "size", "channels"), [(8, 56, 64), (16, 56, 64), (4, 28, 128), (8, 28, 128), (32, 32, 32), (8, 14, 256)]
)
def test_volumes_take_large_tiles(depth: int, size: int, channels: int) -> None:
    assert choose((depth, size, size), channels, channels, (3, 3, 3)) == 4


def test_all_weights_of_a_few_slices_are_read() -> None:
    """Two slices have four taps of six, but read those of all three."""
    assert choose((2, 7, 7), 512, 512, (3, 3, 3)) == 2
    assert choose((2, 14, 14), 256, 256, (3, 3, 3)) == 4


def test_a_volume_of_one_slice_is_an_image() -> None:
    """The taps of its neighbours are left out, by the direct convolution too."""
    for size, channels in itertools.product((3, 7, 14, 56), (8, 64, 512)):
        assert choose((1, size, size), channels, channels, (3, 3, 3)) == choose((1, size, size), channels, channels)


def test_weights_weigh_on_small_maps() -> None:
    """512 -> 512 at 7x7 has 49 pixels for 2.4 million weights: the smaller tile for one slice, the larger one for many."""
    assert choose((1, 7, 7), 512, 512) == 2
    assert choose((8, 7, 7), 512, 512) == 4
    assert choose((1, 2, 2), 512, 512) == 0


def test_few_channels_and_nothing_at_all_are_direct() -> None:
    for channels, size in itertools.product((0, 1, 3, 4), (7, 56, 224)):
        assert choose((1, size, size), channels, 64) == 0
    for channels in (8, 64):
        for size in ((1, 1), (1, 2), (2, 1)):
            assert choose((1, *size), channels, channels) == 0
        for empty in ((1, 0, 5), (1, 5, 0), (0, 5, 5)):
            assert choose(empty, channels, channels) == 0
        assert choose((1, 5, 5), channels, 0) == 0


def test_every_answer_is_a_tile_or_none() -> None:
    sizes, channels = (1, 3, 7, 20, 61), (1, 8, 17, 100, 700)
    answers = {choose((d, h, w), c, o) for d, h, w, c, o in itertools.product((1, 2, 50), sizes, sizes, channels, channels)}
    assert answers == {0, 2, 4}


def test_rows_and_columns_are_alike() -> None:
    for h, w in ((5, 40), (7, 14), (3, 3)):
        assert choose((1, h, w), 96, 80) == choose((1, w, h), 96, 80)
