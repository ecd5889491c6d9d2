"""A network after Ray Serve: rows of requests that come together are computed together, with the bits of each alone.

serve run examples.integrations.ray_serve:build path=/models/network.onnx
curl -d '[0.5, ...]' localhost:8000
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ray import serve

from fastlayers.integrations import ModelFile


@serve.deployment(ray_actor_options={"num_cpus": 1}, max_ongoing_requests=64)
class Network:
    """One replica: a process with its model, whose weights are mapped from the file."""

    def __init__(self, file: ModelFile) -> None:
        self.model = file.model()
        self.inner = self.model.inputs[0].shape[1:]

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.002)
    async def predict(self, rows: list[np.ndarray]) -> list[np.ndarray]:
        return list(self.model(np.stack(rows)))

    async def __call__(self, request: Any) -> list[float]:
        row = np.asarray(await request.json(), np.float32).reshape(self.inner)
        return (await self.predict(row)).tolist()


def build(arguments: dict[str, str]) -> Any:
    """The application. The digest of the file, taken here, is what each replica checks."""
    return Network.bind(ModelFile(arguments["path"], num_threads=1))
