"""examples/integrations/ray_serve.py, as a server on this machine that is asked over HTTP; step `ray` of .ci/run."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .network import loop, rows, save

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]


def test_requests_get_the_bits_of_a_loop(tmp_path: Path) -> None:
    from .clusters import ray_cluster

    path, x = save(tmp_path / "network.safetensors"), rows(60)

    def ask(row: np.ndarray) -> Any:
        data = json.dumps(row.ravel().tolist()).encode()
        with urllib.request.urlopen("http://127.0.0.1:8765/", data, timeout=60) as answer:
            return json.load(answer)

    with ray_cluster(2):
        from ray import serve

        from examples.integrations.ray_serve import build

        serve.start(http_options={"host": "127.0.0.1", "port": 8765})
        serve.run(build({"path": str(path)}))
        try:
            with ThreadPoolExecutor(16) as threads:
                found = np.array(list(threads.map(ask, x)), np.float32)
        finally:
            serve.shutdown()
    np.testing.assert_array_equal(found, loop(path, x))
