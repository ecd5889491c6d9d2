"""Trained TensorFlow Lite models that wheels carry, with what its interpreter answers for them (goldens/real_tflite.npz)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["MODELS", "Real", "drawn"]

_MEDIAPIPE, _WAKEWORD = "mediapipe==0.10.14", "pyopen-wakeword==1.1.0"


class Real(NamedTuple):
    """A model: its wheel and place there, the shape of its input, what drawn inputs are multiplied by, how near results must be.

    Inputs of those without a shape are in the golden file. The tolerance is of the largest number of an output, at least of 1.
    """

    wheel: str
    member: str
    shape: tuple[int, ...] = ()
    scale: float = 1.0
    tolerance: float = 2e-5

    @property
    def name(self) -> str:
        """That of the file."""
        return self.member.rpartition("/")[2].removesuffix(".tflite")


def _face(name: str, size: int, folder: str) -> Real:
    return Real(_MEDIAPIPE, f"mediapipe/modules/{folder}/{name}.tflite", (1, size, size, 3))


def _word(name: str, *shape: int, scale: float = 1.0) -> Real:
    return Real(_WAKEWORD, f"pyopen_wakeword/models/{name}.tflite", shape, scale)


MODELS = (
    Real("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.tflite", tolerance=2e-3),
    Real(_MEDIAPIPE, "mediapipe/modules/face_detection/face_detection_short_range.tflite"),
    Real(_MEDIAPIPE, "mediapipe/modules/face_landmark/face_landmark.tflite"),
    _face("face_detection_full_range_sparse", 192, "face_detection"),
    _face("hand_landmark_full", 224, "hand_landmark"),
    _face("hand_landmark_lite", 224, "hand_landmark"),
    _face("hand_recrop", 256, "holistic_landmark"),
    _face("iris_landmark", 64, "iris_landmark"),
    _face("palm_detection_full", 192, "palm_detection"),
    _face("palm_detection_lite", 192, "palm_detection"),
    _face("pose_detection", 224, "pose_detection"),
    # Its mask comes from values in the thousands, which float32 holds to a thousandth.
    _face("pose_landmark_full", 256, "pose_landmark")._replace(tolerance=5e-3),
    _face("selfie_segmentation", 256, "selfie_segmentation"),
    Real(_MEDIAPIPE, "mediapipe/modules/selfie_segmentation/selfie_segmentation_landscape.tflite", (1, 144, 256, 3)),
    _word("alexa", 1, 16, 96),
    _word("embedding_model", 2, 76, 32, 1),
    _word("hey_jarvis", 1, 16, 96, scale=10),
    _word("hey_mycroft", 1, 16, 96),
    _word("hey_rhasspy", 1, 16, 96),
    _word("melspectrogram", 1, 4000, scale=1000),
    _word("okay_nabu", 1, 16, 96),
)


def drawn(real: Real) -> np.ndarray:
    """The input of a model that has a shape here."""
    return (np.random.default_rng(7).random(real.shape) * 2 - 1).astype(np.float32) * np.float32(real.scale)
