"""A task of Celery, in its default pool of forked workers: the model is loaded in the parent and shared.

pip install celery
BROKER=redis://localhost celery --app celery_app worker --concurrency 2          in examples/services
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from celery import Celery

import fastlayers as fl

app = Celery("speech", broker=os.environ.get("BROKER", "memory://"), backend=os.environ.get("BACKEND", "cache+memory://"))
fl.set_num_threads(1)
model = fl.load(os.environ.get("MODEL") or fl.example("silero_vad"))
model.prepare({"input": (1, 576), "state": (2, 1, 128), "sr": ()})


@app.task
def speech(path: str) -> dict[str, Any]:
    """The share of speech in a file of int16 samples at 16 kHz."""
    stream = model.stream(size=512, overlap=64)
    found = [p.item() for p in stream(np.fromfile(path, np.int16), 16_000)]
    return {"share": float(np.mean(np.array(found) > 0.5)), "worker": os.getpid()}
