"""Calls of convolutional layers and functions as torch has them; see front_cases.py for what a case is."""

from __future__ import annotations

from .front_cases import F, L

LAYERS = (
    L("ConvTranspose1d", 4, 6, 3, shape=(2, 4, 7)),
    L("ConvTranspose1d", 4, 6, 4, stride=3, padding=2, output_padding=2, groups=2, bias=False, shape=(4, 6)),
    L("ConvTranspose1d", 3, 2, 3, stride=2, dilation=3, output_padding=2, shape=(1, 3, 1)),
    L("ConvTranspose2d", 3, 5, (3, 2), stride=(2, 1), padding=(1, 0), shape=(2, 3, 4, 5)),
    L("ConvTranspose2d", 6, 6, 4, stride=2, padding=1, groups=6, shape=(2, 6, 5, 3)),
    L("ConvTranspose2d", 6, 12, 3, stride=2, padding=1, output_padding=1, groups=6, bias=False, shape=(1, 6, 5, 4)),
    L("ConvTranspose2d", 2, 3, 2, 2, shape=(2, 3, 4)),
    L("ConvTranspose3d", 2, 3, (2, 3, 1), stride=(1, 2, 3), padding=(1, 0, 0), output_padding=(0, 1, 2), shape=(1, 2, 2, 3, 4)),
    L("ConvTranspose3d", 4, 2, 2, dilation=2, groups=2, shape=(4, 2, 2, 3)),
    *(L("Conv1d", 2, 3, 4, padding=3, padding_mode=mode, shape=(2, 2, 9)) for mode in ("reflect", "replicate", "circular")),
    *(
        L("Conv3d", 2, 3, (3, 2, 3), stride=(1, 2, 1), padding=(2, 1, 2), padding_mode=mode, shape=(1, 2, 4, 5, 3))
        for mode in ("reflect", "replicate", "circular")
    ),
    *(
        L("Conv2d", 4, 8, 3, stride=2, padding=(2, 1), dilation=2, groups=4, padding_mode=mode, shape=(1, 4, 7, 5))
        for mode in ("zeros", "reflect", "replicate", "circular")
    ),
)

FUNCTIONS = (
    F("conv_transpose1d", (2, 4, 5), (4, 3, 3), (6,), stride=2, padding=1, groups=2),
    F("conv_transpose2d", (2, 4, 5, 3), (4, 3, 3, 2), (3,), stride=2, padding=(1, 0), output_padding=(1, 0), dilation=(1, 2)),
    F("conv_transpose3d", (4, 2, 3, 3), (4, 2, 3, 2, 1), stride=(2, 2, 1)),
)
