"""Windows along an axis, counted one by one, and TensorFlow's padding by hand."""

from __future__ import annotations

import itertools

from fastlayers._windows import same_padding, windows_along


def counted(size: int, before: int, after: int, reach: int, stride: int, ceil: bool) -> int:
    """Starts of windows that fit, or, with `ceil`, that overhang by less than a stride and begin before the padding after."""
    room = size + before + after

    def there(start: int) -> bool:
        over = start + reach - room
        return over <= 0 or (ceil and over < stride and start < size + before)

    return sum(map(there, range(0, room + stride, stride)))


def test_windows_are_counted() -> None:
    for size, before, after, reach, stride in itertools.product(range(1, 9), range(3), range(3), range(1, 6), range(1, 5)):
        for ceil in (False, True):
            found = windows_along(size, (before, after), reach, stride, ceil)
            assert max(found, 0) == counted(size, before, after, reach, stride, ceil), (size, before, after, reach, stride, ceil)  # type: ignore[type-var, operator]


def test_names_stay_where_every_position_has_a_window() -> None:
    assert windows_along("n", (1, 1), 3, 1) == "n" == windows_along("n", None, 7, 1)
    assert windows_along("n", (1, 1), 3, 2) is windows_along("n", (1, 0), 3, 1) is windows_along(None, None, 3, 1) is None


def test_same_padding_puts_the_odd_one_after() -> None:
    """Sizes, reaches and strides with what tf.nn.conv1d adds."""
    given = {(5, 2, 1): (0, 1), (5, 3, 1): (1, 1), (6, 3, 2): (0, 1), (7, 3, 2): (1, 1), (8, 4, 3): (1, 1), (4, 1, 2): (0, 0)}
    for arguments, pads in {**given, (0, 3, 1): (0, 0), (224, 7, 2): (2, 3)}.items():
        assert same_padding(*arguments) == pads, arguments
        assert same_padding(*arguments, lower=True) == pads[::-1], arguments
        size, reach, stride = arguments
        assert windows_along(size, None, reach, stride) == -(-size // stride)
