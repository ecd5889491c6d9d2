"""Pools over windows, bins, whole maps and time."""

from __future__ import annotations

import numpy as np

from ._base import E, Example

_SIZES = {1: (9,), 2: (6, 7), 3: (4, 5, 6)}
_LENGTHS, _MASK = np.array([3, 0]), np.array([[True, False, True, True], [False, False, True, False]])


def _over(n: int) -> list[Example]:
    first, last = (2, 3, *_SIZES[n]), (2, *_SIZES[n], 3)
    return [
        E(f"max_pool{n}d", first, kernel_size=2),
        E(f"max_pool{n}d", first, kernel_size=[3] * n, stride=2, padding=1, ceil_mode=True),
        E(f"max_pool{n}d", last, kernel_size=3, stride=2, padding="same", layout="nhwc"),
        E(f"max_pool{n}d", first[1:], kernel_size=2, stride=1, dilation=2, padding=[[0, 1]] * n),
        E(f"max_pool{n}d", (0, *first[1:]), kernel_size=2),
        E(f"avg_pool{n}d", first, kernel_size=3, stride=2, padding=1, ceil_mode=True),
        E(f"avg_pool{n}d", first, kernel_size=3, stride=2, padding=1, count_include_pad=False),
        E(f"avg_pool{n}d", last, kernel_size=2, padding="same", layout="nhwc"),
        E(f"avg_pool{n}d", last[1:], kernel_size=2, layout="nhwc"),
        *([E(f"avg_pool{n}d", first, kernel_size=3, stride=2, padding=1, divisor_override=5)] if n > 1 else []),
        E(f"lp_pool{n}d", first, norm_type=2, kernel_size=2),
        E(f"lp_pool{n}d", last, norm_type=3.0, kernel_size=3, stride=2, ceil_mode=True, layout="nhwc"),
        E(f"lp_pool{n}d", first[1:], norm_type=1, kernel_size=3, stride=2, padding=1, norm=True),
        E(f"adaptive_avg_pool{n}d", first, output_size=4),
        E(f"adaptive_avg_pool{n}d", last, output_size=3, layout="nhwc"),
        E(f"adaptive_avg_pool{n}d", first[1:], output_size=(5,) * n),
        E(f"adaptive_max_pool{n}d", first, output_size=[4] * n),
        E(f"adaptive_max_pool{n}d", last, output_size=1, layout="nhwc"),
        *(
            E(f"global_{kind}_pool", shape, layout=layout, keepdims=keep)
            for kind in ("avg", "max")
            for shape, layout in ((first, "nchw"), (last, "nhwc"))
            for keep in (False, True)
        ),
    ]


EXAMPLES: list[Example] = [
    *(example for n in (1, 2, 3) for example in _over(n)),
    E("adaptive_avg_pool2d", (2, 3, 6, 7), output_size=(None, 4)),
    *(
        E(f"{kind}_over_time", x, lengths, mask, batch_first=first)
        for kind in ("mean", "max")
        for x, first in (((2, 4, 3), True), ((4, 2, 3), False))
        for lengths, mask in ((None, None), (_LENGTHS, None), (None, _MASK), (_LENGTHS, _MASK))
    ),
    E("mean_over_time", (0, 4, 3), None, None),
    E("max_over_time", (2, 0, 3), None, None),
]
