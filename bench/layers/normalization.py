"""Normalization and dropout."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, normal, np

# layer, its arguments, shape of x: transformers, then networks of images
LAYERS: list[tuple[str, tuple[Any, ...], tuple[int, ...]]] = [
    ("LayerNorm", (768,), (128, 768)),
    ("LayerNorm", (96,), (1, 3136, 96)),
    ("RMSNorm", (2048,), (32, 2048)),
    ("BatchNorm1d", (256,), (64, 256)),
    ("BatchNorm2d", (64,), (1, 64, 56, 56)),
    ("BatchNorm3d", (32,), (1, 32, 8, 28, 28)),
    ("GroupNorm", (32, 64), (1, 64, 56, 56)),
    ("GroupNorm", (8, 256), (4, 256, 14, 14)),
    ("InstanceNorm1d", (64,), (4, 64, 1000)),
    ("InstanceNorm2d", (64,), (1, 64, 56, 56)),
    ("InstanceNorm3d", (16,), (1, 16, 8, 28, 28)),
    ("LocalResponseNorm", (5,), (1, 64, 56, 56)),
    ("Dropout", (0.1,), (128, 768)),
    ("Dropout1d", (0.1,), (4, 64, 1000)),
    ("Dropout2d", (0.1,), (1, 64, 56, 56)),
    ("Dropout3d", (0.1,), (1, 16, 8, 28, 28)),
]
# function, shape of x, the other arguments as shapes (tensors) or as they are
FUNCTIONS: list[tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = [
    ("layer_norm", (128, 768), ([768], (768,), (768,)), {}),
    ("rms_norm", (128, 768), ([768], (768,)), {}),
    ("batch_norm", (1, 64, 56, 56), ((64,), (64,), (64,), (64,)), {}),
    ("batch_norm", (8, 64, 28, 28), (None, None, (64,), (64,)), {"training": True}),
    ("group_norm", (1, 64, 56, 56), (32, (64,), (64,)), {}),
    ("instance_norm", (1, 64, 56, 56), (None, None, (64,), (64,)), {}),
    ("local_response_norm", (1, 64, 56, 56), (5,), {}),
    ("cosine_similarity", (256, 768), ((256, 768),), {}),
]


def state_of(layer: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {name: normal(rng, *shape) for name, shape in layer.tensor_shapes().items()}
    return {name: np.abs(a) + np.float32(0.1) if name == "running_var" else a for name, a in made.items()}


def layer(name: str, arguments: tuple[Any, ...], shape: tuple[int, ...]) -> Pair:
    x = normal(np.random.default_rng(1), *shape)
    mine = getattr(fl, name)(*arguments)
    state = state_of(mine)
    mine.load_state_dict(state)

    def theirs(torch: Any) -> Any:
        net, tx = getattr(torch.nn, name)(*arguments).eval(), torch.tensor(x)
        net.load_state_dict({k: torch.tensor(v) for k, v in state.items()}, strict=False)
        return lambda: net(tx)

    return Pair(lambda: mine(x), theirs)


def function(name: str, shape: tuple[int, ...], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Pair:
    rng = np.random.default_rng(1)
    x = normal(rng, *shape)
    given = [np.abs(normal(rng, *a)) + np.float32(0.1) if isinstance(a, tuple) else a for a in arguments]
    mine = getattr(fl.functional, name)

    def theirs(torch: Any) -> Any:
        tx, rest = torch.tensor(x), [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in given]
        call = getattr(torch.nn.functional, name)
        return lambda: call(tx, *rest, **keywords)

    return Pair(lambda: mine(x, *given, **keywords), theirs)


def similar() -> Pair:
    """A batch of embeddings and a single one."""
    rng = np.random.default_rng(1)
    x, y, mine = normal(rng, 1000, 384), normal(rng, 1, 384), fl.CosineSimilarity()

    def theirs(torch: Any) -> Any:
        tx, ty, net = torch.tensor(x), torch.tensor(y), torch.nn.CosineSimilarity()
        return lambda: net(tx, ty)

    return Pair(lambda: mine(x, y), theirs)


def dropping() -> Pair:
    """Draws from a seed, which torch does not."""
    x = normal(np.random.default_rng(1), 128, 768)
    return Pair(lambda: fl.functional.dropout(x, 0.1, True, seed=3))


def monte_carlo() -> Pair:
    net = fl.Sequential(fl.Linear(128, 256, activation="relu"), fl.Dropout(0.1), fl.Linear(256, 10))
    net.load_state_dict(state_of(net))
    estimate = fl.MonteCarlo(net, samples=100)
    x = normal(np.random.default_rng(1), 8, 128)
    return Pair(lambda: estimate(x)[0])


ROWS = [
    *(Row((name,), f"{args} @{shape}", partial(layer, name, args, shape)) for name, args, shape in LAYERS),
    *(
        Row((name,), f"@{shape}" + (" of the batch" if keywords else ""), partial(function, name, shape, args, keywords))
        for name, shape, args, keywords in FUNCTIONS
    ),
    Row(("CosineSimilarity",), "1000x384 and 1x384", similar),
    Row(("dropout",), "drops 0.1 of 128x768", dropping),
    Row(("MonteCarlo",), "100 samples of 128-256-10, B8", monte_carlo),
]
