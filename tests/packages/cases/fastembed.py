"""fastembed: embeddings of texts, of a model in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..models import encoder
from ..texts import TEXTS, tokenizer_files


def answers(folder: Path) -> Any:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    tokenizer_files(folder)
    encoder(folder / "model.onnx")
    TextEmbedding.add_custom_model(
        model="tests/tiny", pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf="tests/tiny"), dim=32,
        model_file="model.onnx",
    )  # fmt: skip
    model = TextEmbedding("tests/tiny", specific_model_path=str(folder))
    return np.array(list(model.embed(TEXTS)))
