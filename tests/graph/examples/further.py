"""Further activations."""

from __future__ import annotations

from ._base import E, Example

EXAMPLES: list[Example] = [
    *(
        E(name, shape)
        for name in ("celu", "hardshrink", "softshrink", "tanhshrink", "logsigmoid", "quick_gelu", "softmin")
        for shape in ((2, 3, 4), (), (0, 3), (5,))
    ),
    E("celu", (2, 3), alpha=0.3),
    E("hardshrink", (2, 3), lambd=1),
    E("softshrink", (2, 3), lambd=1.5),
    E("threshold", (2, 3), threshold=1, value=-3.0),
    E("quick_gelu", (2, 3), alpha=2),
    E("softmin", (2, 3, 4), dim=0),
]
