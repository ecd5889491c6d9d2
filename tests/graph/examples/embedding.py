"""Tables whose rows are picked by number."""

from __future__ import annotations

import numpy as np

from ._base import E, Example

EXAMPLES: list[Example] = [
    E("embedding", np.array([[3, 0, 3], [1, 2, 4]]), (5, 3)),
    E("embedding", np.array(2, np.int32), (5, 3), padding_idx=-1),
    E("embedding", np.zeros((2, 0), np.uint8), (5, 3), padding_idx=0),
    E("embedding", np.zeros((2, 3, 1), np.int64), (1, 1)),
]
