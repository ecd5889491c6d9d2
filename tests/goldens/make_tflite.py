"""Makes tflite.npz: small TensorFlow Lite files with inputs, and what TensorFlow Lite's own interpreter answers for them.

Run: pip install ai-edge-litert==2.3.0 numpy; python -m tests.goldens.make_tflite (from the root of the sources).
Its plain kernels are asked, not XNNPACK's. `data` has the bytes of
all arrays, `index` (JSON) by case the number of inputs, and dtype and shape of the file, the inputs and the outputs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .tflite_cases import CASES

HERE = Path(__file__).parent


def run(content: bytes, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """The interpreter's answers; inputs are resized to the feeds' shapes."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType  # type: ignore[import-not-found]

    # mediapipe's operators are XNNPACK's alone.
    custom = b"Convolution2DTransposeBias" in content
    plain = OpResolverType.AUTO if custom else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=plain)
    places = interpreter.get_input_details()
    for place, feed in zip(places, feeds, strict=True):
        if tuple(place["shape"]) != feed.shape:
            interpreter.resize_tensor_input(place["index"], feed.shape)
    interpreter.allocate_tensors()
    for place, feed in zip(places, feeds, strict=True):
        interpreter.set_tensor(place["index"], feed)
    interpreter.invoke()
    return [interpreter.get_tensor(place["index"]) for place in interpreter.get_output_details()]


def steady(content: bytes, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """The answers that come twice in a row: a joined LSTM both ways reads memory that nobody has written, at times."""
    """The answers that come twice in a row: at times an LSTM both ways reads memory that nobody has written."""
    before: list[np.ndarray] = []
    for _ in range(20):
        now = run(content, feeds)
        if len(before) == len(now) and all(a.tobytes() == b.tobytes() for a, b in zip(before, now, strict=True)):
            return now
        before = now
    raise RuntimeError("every answer is another")


def main() -> None:
    index: dict[str, Any] = {}
    blob = bytearray()

    def stored(array: np.ndarray) -> list[Any]:
        blob.extend(array.tobytes())
        return [array.dtype.str, *array.shape]

    for name, (content, feeds) in CASES.items():
        try:
            answers = steady(content, feeds)
        except (ValueError, RuntimeError) as error:
            print(f"{name}: {error}")
            continue
        arrays = [np.frombuffer(content, np.uint8), *feeds, *answers]
        index[name] = [len(feeds), [stored(array) for array in arrays]]
    np.savez_compressed(HERE / "tflite.npz", index=np.array(json.dumps(index)), data=np.frombuffer(blob, np.uint8))
    print(len(index), (HERE / "tflite.npz").stat().st_size)


if __name__ == "__main__":
    main()
