"""speechmos: how good speech sounds, by its three families of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..given import noise, speech


def answers(folder: Path) -> Any:
    from speechmos import aecmos, dnsmos, plcmos

    clean = speech(9.1)
    worse = (clean + 0.01 * noise(len(clean))).clip(-1, 1)
    echo = {"lpb": clean, "mic": worse, "enh": clean}
    return {
        "dns": dnsmos.run(worse, 16000, return_df=False),
        "personal": dnsmos.run(worse, 16000, model_type="pdnsmos", return_df=False),
        "plc": plcmos.run(worse, 16000, return_df=False),
        "aec": aecmos.run(echo, 16000, talk_type="st", return_df=False),
    }
