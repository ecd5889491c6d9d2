"""A network in Triton's Python backend: models/NAME/1/ has this file and network.onnx, and no configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb

import fastlayers as fl

FILE = Path(__file__).with_name("network.onnx")


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Inputs and outputs as the file has them; sizes that are open are -1. Requests are batched below, not by Triton."""
        model, kinds = fl.load(FILE), {np.dtype(kind): name for name, kind in pb.TRITON_STRING_TO_NUMPY.items()}
        for specs, add in ((model.inputs, config.add_input), (model.outputs, config.add_output)):
            for spec in specs:
                sizes = [size if isinstance(size, int) else -1 for size in spec.shape]
                add({"name": spec.name, "data_type": kinds[spec.dtype], "dims": sizes})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args: dict[str, str]) -> None:
        self.model = fl.load(FILE, num_threads=1)

    def execute(self, requests: list[Any]) -> list[Any]:
        return list(map(self.answer, requests))

    def answer(self, request: Any) -> Any:
        try:
            feeds = {name: pb.get_input_tensor_by_name(request, name).as_numpy() for name in self.model.inputs.names}
            results = self.model.run(feeds, request.requested_output_names())
            return pb.InferenceResponse([pb.Tensor(*result) for result in results.items()])
        except fl.Error as error:
            return pb.InferenceResponse(error=pb.TritonError(str(error)))
