"""faster-whisper: its search for speech."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..given import speech


def answers(folder: Path) -> Any:
    from faster_whisper.vad import get_speech_timestamps, get_vad_model

    audio = speech(7)
    return {"stamps": get_speech_timestamps(audio), "all": get_vad_model()(audio[: len(audio) // 512 * 512])}
