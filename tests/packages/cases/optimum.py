"""optimum: models of transformers, of a folder, by way of IOBinding and without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models import encoder
from ..texts import TEXTS, bert_files


def answers(folder: Path) -> Any:
    from optimum.onnxruntime import ORTModelForFeatureExtraction, ORTModelForSequenceClassification
    from transformers import AutoTokenizer

    bert_files(folder / "features")
    encoder(folder / "features" / "model.onnx")
    bert_files(folder / "classes", labels=3)
    encoder(folder / "classes" / "model.onnx", head=3)
    given = AutoTokenizer.from_pretrained(folder / "features")(TEXTS, padding=True, return_tensors="pt")
    found: dict[str, Any] = {}
    for bound in (False, True):
        features = ORTModelForFeatureExtraction.from_pretrained(folder / "features", use_io_binding=bound)
        classes = ORTModelForSequenceClassification.from_pretrained(folder / "classes", use_io_binding=bound)
        found[f"bound{bound}"] = {
            "features": features(**given).last_hidden_state.numpy(),
            "logits": classes(**given).logits.numpy(),
        }
    return found
