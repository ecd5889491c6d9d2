"""Small folders that sentence-transformers and transformers wrote, and what these compute of texts.

python -m tests.goldens.make_text    rewrites tests/goldens/text.npz; needs sentence-transformers and torch
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.text import folders

PATH = Path(__file__).parent / "text.npz"
SHORT = [text for text in folders.TEXTS if len(text) < 60]  # pipelines do not truncate


def main() -> None:
    import torch
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
    from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification, BertModel, pipeline

    torch.manual_seed(0)
    made: dict[str, np.ndarray] = {}
    root = Path(tempfile.mkdtemp())

    def bert(kind: Any, name: str, **more: Any) -> Path:
        config = BertConfig(
            vocab_size=len(folders.WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=80, **more,
        )  # fmt: skip
        network = kind(config).eval()
        with torch.no_grad():
            for weight in network.parameters():
                weight.add_(torch.randn_like(weight) * 0.2)
        folders.word_pieces(root / name, 64)
        network.save_pretrained(root / name)
        return root / name

    def keep(name: str, **wanted: Any) -> None:
        for path in sorted((root / name).rglob("*")):
            if path.suffix in (".json", ".safetensors"):
                made[f"{name}/{path.relative_to(root / name).as_posix()}"] = np.frombuffer(path.read_bytes(), np.uint8)
        made.update({f"{name}:{key}": np.asarray(value) for key, value in wanted.items()})

    base = str(bert(BertModel, "base"))
    pooling = Pooling(16, pooling_mode=("cls", "max", "mean", "weightedmean", "lasttoken", "mean_sqrt_len_tokens"))
    modules = [Transformer(base, max_seq_length=20), pooling, Dense(96, 5), Normalize()]
    encoder = SentenceTransformer(modules=modules, prompts={"query": "question the ", "document": "answer "})
    encoder.save(str(root / "encoder"))
    vectors = encoder.encode(folders.TEXTS)
    query = encoder.encode(folders.TEXTS, prompt_name="query")
    keep("encoder", vectors=vectors, query=query, similarity=encoder.similarity(vectors, query).numpy())

    CrossEncoder(str(bert(BertForSequenceClassification, "pairs", num_labels=1))).save_pretrained(str(root / "cross"))
    pairs = [(a, b) for a in folders.TEXTS[:3] for b in folders.TEXTS]
    keep("cross", scores=CrossEncoder(str(root / "cross")).predict(pairs))

    names = {0: "O", 1: "B-LOC", 2: "I-LOC"}
    folder = str(bert(BertForSequenceClassification, "texts", id2label=names))
    found = [pipeline("text-classification", model=folder, top_k=None)(text) for text in SHORT]
    found = [entries[0] if isinstance(entries[0], list) else entries for entries in found]
    keep("texts", labels=json.dumps([[(e["label"], e["score"]) for e in entries] for entries in found]))
    folder = str(bert(BertForTokenClassification, "tokens", id2label=names))
    found = [pipeline("token-classification", model=folder)(text) for text in SHORT]
    entries = [[(e["entity"], float(e["score"]), e["start"], e["end"]) for e in entries] for entries in found]
    keep("tokens", labels=json.dumps(entries))
    np.savez_compressed(PATH, **made)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
