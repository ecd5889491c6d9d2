"""Speech probabilities over HTTP with FastAPI: the body is 16 kHz mono int16, the answer a probability for each 512 samples.

pip install fastapi uvicorn
uvicorn fastapi_app:app --workers 2          in examples/services; MODEL=model.onnx: another network of the same form
curl --data-binary @speech.raw localhost:8000/speech
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
from fastapi import FastAPI, HTTPException, Request

import fastlayers as fl

LONGEST = 60 * 16_000 * 2  # bytes of a minute
models: dict[str, fl.Model] = {}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    fl.set_num_threads(1)  # as many workers as processors, one thread each
    with fl.load(os.environ.get("MODEL") or fl.example("silero_vad"), require_native=True) as model:
        models["vad"] = model
        model.prepare({"input": (1, 576), "state": (2, 1, 128), "sr": ()})  # the first request waits for nothing
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/health")
def health() -> dict[str, str]:
    return {"variant": fl.kernels.current()}


@app.post("/speech")
async def speech(request: Request) -> dict[str, list[float]]:
    body = bytearray()
    async for piece in request.stream():  # counted as it comes: a header may be
        body += piece
        if len(body) > LONGEST:
            raise HTTPException(413, "expected a minute at most")
    if len(body) % 2:
        raise HTTPException(422, "expected samples of two bytes each")
    sound = np.frombuffer(bytes(body), np.int16).astype(np.float32) / 32768
    sound = np.pad(sound, (64, -len(sound) % 512))
    state = np.zeros((2, 1, 128), np.float32)
    found = []
    for begin in range(0, len(sound) - 64, 512):
        feeds = {"input": sound[None, begin : begin + 576], "state": state, "sr": 16_000}
        try:
            results = await models["vad"].arun(feeds, timeout=0.5)  # other requests go on meanwhile
        except fl.TimeoutError as error:
            raise HTTPException(503, "too busy") from error
        found.append(results["output"].item())
        state = results["stateN"]
    return {"probabilities": found}
