"""sentence-transformers: embeddings by its ONNX backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..models import encoder
from ..texts import TEXTS, bert_files


def answers(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    bert_files(folder)
    encoder(folder / "onnx" / "model.onnx")
    steps = {"0": "Transformer", "1": "Pooling"}
    modules = [
        {"idx": int(i), "name": i, "path": "" if i == "0" else "1_Pooling", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in steps.items()
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32, "do_lower_case": false}', encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    model = SentenceTransformer(str(folder), backend="onnx", device="cpu")
    return model.encode(TEXTS)
