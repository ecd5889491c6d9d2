"""flashrank: passages in the order of a question, by a model of random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models import encoder
from ..texts import TEXTS, bert_files


def answers(folder: Path) -> Any:
    from flashrank import Ranker, RerankRequest
    from flashrank.Config import model_file_map

    bert_files(folder / "tests-tiny")
    encoder(folder / "tests-tiny" / "model.onnx", head=1)
    model_file_map["tests-tiny"] = "model.onnx"
    ranker = Ranker("tests-tiny", cache_dir=str(folder), max_length=32)
    passages = [{"id": i, "text": text} for i, text in enumerate(TEXTS)]
    return [
        {"id": int(r["id"]), "score": float(r["score"])}
        for r in ranker.rerank(RerankRequest(query="a question", passages=passages))
    ]
