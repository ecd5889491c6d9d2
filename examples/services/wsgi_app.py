"""The same service without a framework, for gunicorn: the model is loaded once, before the workers are forked.

pip install gunicorn
gunicorn --config gunicorn.conf.py wsgi_app:app          in examples/services
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import fastlayers as fl

LONGEST = 60 * 16_000 * 2
fl.set_num_threads(1)
model = fl.load(os.environ.get("MODEL") or fl.example("silero_vad"), require_native=True)
model.prepare({"input": (1, 576), "state": (2, 1, 128), "sr": ()})  # workers share what is packed here


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        length = -1
    if not 0 <= length <= LONGEST or length % 2:
        start_response("400 Bad Request", [("Content-Type", "text/plain")])
        return [b"expected int16 samples, a minute at most\n"]
    sound = np.frombuffer(environ["wsgi.input"].read(length), np.int16)
    stream = model.stream(size=512, overlap=64)  # one for each request: a stream belongs to one caller
    found = [p.item() for p in [*stream(sound, 16_000), *stream.flush()]]
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"probabilities": found, "worker": os.getpid()}).encode()]
