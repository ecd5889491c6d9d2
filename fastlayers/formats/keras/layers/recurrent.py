"""Recurrent layers: SimpleRNN, GRU and LSTM, RNN with their cells, and Bidirectional."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....operators.recurrent import joined_options
from ..activations import activated, gate
from ..build import BOOL, INT64, Build, Tensor
from ..layer import Layer, layer, tensors

# Words of cells (those of Keras 1 among them), of layers around them, and of convolutional ones.
_CELL = "units activation recurrent_activation use_bias reset_after | output_dim inner_activation"
_LAYER = "stateful return_sequences return_state go_backwards time_major zero_output_for_mask"
_CONV = "kernel_size filters strides padding dilation_rate data_format activation recurrent_activation use_bias"
STATEFUL = "a stateful recurrent layer (model.stream keeps state outside of the model)"
_GATES = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}
# Where the kernels' gates (r z n, i f g o) stand among Keras' (z r h, i f c o).
_ORDER = {"SimpleRNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 1, 2, 3)}
_OPS = {"SimpleRNN": "RNN", "GRU": "GRU", "LSTM": "LSTM"}


def _kind(cell: Layer) -> str:
    return cell.kind.removeprefix("CuDNN").removesuffix("Cell")


def _cell_weights(this: Layer) -> list[str]:
    if this.context.version < (2, 0):
        # Keras 1 had three weights a gate; z r h, and i c f o.
        letters = {"LSTM": "icfo", "GRU": "zrh"}.get(_kind(this), "")
        return [f"{w}_{g}" for g in letters for w in "WUb"] or ["kernel", "recurrent_kernel", "bias"]
    found = ["kernel", "recurrent_kernel"]
    for word, default in (("activation", "tanh"), ("recurrent_activation", "sigmoid")):
        if not this.kind.startswith("CuDNN"):
            gate(this, this.config.get(word, default))
    return [*found, "bias"] if this.config.get("use_bias", True) else found


@layer("SimpleRNNCell", "GRUCell", "LSTMCell", words=_CELL, weights=_cell_weights)
def cell(this: Layer, b: Build, x: Tensor, states: Any = None, *more: Any) -> Any:
    """One step, called by itself."""
    given = tensors([states, *more])
    y, after = over_time(this, b, b.unsqueeze(x, 1), given, None, False)
    return [b.squeeze(y, 1), *after]


def _cells(this: Layer) -> list[tuple[str, Layer]]:
    return [("cells/*", this.child(data)) for data in this.config["cells"]]


@layer("StackedRNNCells", words="cells", children=_cells)
def stacked(this: Layer, b: Build, *args: Any) -> Any:
    """Cells one on the other; only inside of RNN."""
    return this.refuse("stacked cells outside of RNN")


def _own_cell(this: Layer) -> list[tuple[str, Layer]]:
    """The cell that the layer makes for itself, of the same configuration."""
    if this.get("stateful"):
        this.context.refuse(STATEFUL, "/".join(this.path))
    return [("cell", this.inner(f"{this.kind}Cell"))]


def _given_cell(this: Layer) -> list[tuple[str, Layer]]:
    if this.get("stateful"):
        this.context.refuse(STATEFUL, "/".join(this.path))
    return [("cell", this.child(this.config["cell"]))]


def _checked(this: Layer) -> list[str]:
    if this.get("stateful"):
        this.context.refuse(STATEFUL, "/".join(this.path))
    return ["kernel", "recurrent_kernel", "bias"]


@layer("SimpleRNN", "GRU", "LSTM", words=f"{_LAYER} {_CELL}", children=_own_cell, mask="own")
@layer("RNN", words=f"cell {_LAYER}", children=_given_cell, mask="own")
@layer("CuDNNGRU", "CuDNNLSTM", words=f"units {_LAYER} | output_dim", weights=_checked, mask="own")
def recurrent(this: Layer, b: Build, x: Any, initial_state: Any = None, mask: Any = None, constants: Any = None) -> Any:
    """Over a sequence: outputs or the last of them, and the states if they are asked for."""
    if constants is not None:
        this.refuse("constants of a cell")
    if isinstance(x, (list, tuple)):
        x, *rest = tensors(x)
        initial_state = rest or initial_state
    if this.get("time_major"):
        this.refuse("time_major")
    given = tensors(initial_state)
    handed, mask = x.mask, _time_mask(b, _mask_for(this, mask, x, given))
    backwards, whole = bool(this.get("go_backwards")), bool(this.get("return_sequences"))
    x = b.floats(x)
    cell = this.children[0][1] if this.children else this
    if backwards and mask is not None:
        x, mask_in = b.flip(x, 1), b.flip(mask, 1)
        y, states = over_time(cell, b, x, given, mask_in, False)
        y, mask = outputs(this, b, y, states, mask_in, whole, bool(given)), mask
    else:
        y, states = over_time(cell, b, x, given, mask, backwards)
        if mask is None and backwards and whole:
            y = b.flip(y, 1)
        y = outputs(this, b, y, states, mask, whole, bool(given))
    y = y.masked((mask or handed) if whole else None)
    return [y, *states] if this.get("return_state") else y


def _mask_for(this: Layer, mask: Any, x: Tensor, given: list[Tensor]) -> Any:
    """The mask that the call was given, or that of x: Keras 3 does not look at this one where there are states too."""
    return mask if mask is not None else None if given and not this.context.old else x.mask


def _time_mask(b: Build, mask: Any) -> Tensor | None:
    """A mask (n, t) of booleans."""
    if isinstance(mask, (list, tuple)):
        mask = next(iter(tensors(mask)), None)
    if mask is None:
        return None
    return b.cast(b.squeeze(mask, 2) if mask.rank == 3 else mask, BOOL)


def outputs(this: Layer, b: Build, y: Tensor, states: list[Tensor], mask: Tensor | None, whole: bool, given: bool) -> Tensor:
    """The layer's first result, of outputs in the order in which they were made; zeros where there was no step."""
    if mask is None:
        return y if whole else _first(states, this)
    zeros = bool(this.get("zero_output_for_mask"))
    if whole:
        return y if zeros else held(b, y, mask)
    if zeros:
        last = b.unsqueeze(b.take(mask, 1, -1), 1)
        return b.op("Where", last, _first(states, this), 0.0)
    return b.take(held(b, y, mask), 1, -1) if given else _first(states, this)


def _first(states: list[Tensor], this: Layer) -> Tensor:
    """h of the last cell."""
    cell = this.children[0][1] if this.children else this
    last = cell.children[-1][1] if cell.kind == "StackedRNNCells" else cell
    return states[-2] if _kind(last) == "LSTM" else states[-1]


def held(b: Build, y: Tensor, mask: Tensor) -> Tensor:
    """The outputs, with the last one repeated where there is no step, or zeros if there is none before it."""
    steps = b.cast(mask, INT64)
    position = b.op("CumSum", b.op("Add", b.op("Mul", steps, b.ints(0)), b.ints(1)), b.constant(np.array(1, np.int64)))
    there = b.op("Mul", position, steps)
    before = b.op("GreaterOrEqual", b.unsqueeze(position, 2), b.unsqueeze(position, 1))
    latest = b.reduce("Max", b.op("Mul", b.cast(before, INT64), b.unsqueeze(there, 1)), [2])
    padded = b.op("Pad", y, b.ints(1, 0), None, b.ints(1))
    index = b.op("Expand", b.unsqueeze(latest, 2), b.op("Shape", y))
    return b.op("GatherElements", padded, index, axis=1)


def over_time(
    cell: Layer, b: Build, x: Tensor, given: list[Tensor], mask: Tensor | None, reverse: bool
) -> tuple[Tensor, list[Tensor]]:
    """(outputs, each at its own time, states after the last step) of a cell or of stacked ones."""
    if cell.kind == "StackedRNNCells":
        states: list[Tensor] = []
        for _, inner in cell.children:
            count = 2 if _kind(inner) == "LSTM" else 1
            x, after = over_time(inner, b, x, given[:count], mask, reverse)
            given, states = given[count:], states + after
        return x, states
    kind = _kind(cell)
    if kind not in _GATES:
        cell.refuse("a cell of this class in a recurrent layer")
    w, r, biases = _weights(cell, kind, x)
    count = 2 if kind == "LSTM" else 1
    if given and len(given) != count:
        cell.fail(f"is given {len(given)} states: expected {count}")
    before = [b.unsqueeze(b.floats(state), 0) for state in given]
    y, *after = b.many(
        _OPS[kind], 1 + count, x, b.constant(w, "W"), b.constant(r, "R"), None if biases is None else b.constant(biases, "B"),
        mask, *before,        direction="reverse" if reverse else "forward", layout=1, joined=True, options=_options(cell, kind),
    )  # fmt: skip
    return y, [b.squeeze(state, 0) for state in after]


def _options(cell: Layer, kind: str) -> Any:
    default = "hard_sigmoid" if cell.context.version < (2, 3) else "sigmoid"
    plain = cell.kind.startswith("CuDNN")
    activation = gate(cell, "tanh" if plain else cell.config.get("activation", "tanh"))
    recurrent = gate(
        cell, "sigmoid" if plain else cell.config.get("recurrent_activation", cell.config.get("inner_activation", default))
    )
    return joined_options(_OPS[kind], recurrent, activation, _reset_after(cell))


def _reset_after(cell: Layer) -> bool:
    return cell.kind.startswith("CuDNN") or bool(cell.get("reset_after", not cell.context.old))


def _weights(cell: Layer, kind: str, x: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The operator's W (1, g h, i), R (1, g h, h) and B (1, 2 g h), gates in the kernels' order."""
    gates, inputs = _GATES[kind], x.sizes[-1]
    units = int(cell.config.get("units", cell.config.get("output_dim", 0)))
    if cell.own and cell.own[0].startswith("W_"):
        _joined(cell, kind)
    wide = gates * units
    kernel = cell.weight("kernel", inputs if isinstance(inputs, int) else None, wide)
    recurrent = cell.weight("recurrent_kernel", units, wide)
    order = _ORDER[kind]

    def turned(matrix: np.ndarray) -> np.ndarray:
        blocks = matrix.reshape(matrix.shape[0], gates, units)[:, list(order)]
        return np.ascontiguousarray(blocks.reshape(matrix.shape[0], wide).T)[None]

    if "bias" not in cell.values:
        return turned(kernel), turned(recurrent), None
    bias = cell.weight("bias")
    if bias.size not in (wide, 2 * wide):
        cell.fail(f"weight 'bias' has shape {bias.shape}: expected {wide} or {2 * wide} values")
    if kind == "GRU" and (bias.size == 2 * wide) != _reset_after(cell):
        cell.fail(f"weight 'bias' has shape {bias.shape}, reset_after is {_reset_after(cell)}: they contradict each other")
    rows = bias.reshape(-1, gates, units)[:, list(order)].reshape(-1, wide)
    both = np.zeros((1, 2 * wide), np.float32)
    both[0, : rows.size] = rows.reshape(-1)
    return turned(kernel), turned(recurrent), both


def _joined(cell: Layer, kind: str) -> None:
    """Keras 1's weights of single gates as the matrices of later releases."""
    letters = "ifco" if kind == "LSTM" else "zrh"
    for name, short in (("kernel", "W"), ("recurrent_kernel", "U"), ("bias", "b")):
        cell.values[name] = np.concatenate([cell.weight(f"{short}_{letter}") for letter in letters], axis=-1)


def _conv_cell(this: Layer) -> list[tuple[str, Layer]]:
    if this.get("stateful"):
        this.context.refuse(STATEFUL, "/".join(this.path))
    return [("cell", this.inner("ConvLSTMCell"))]


@layer("ConvLSTMCell", words=_CONV, weights=_cell_weights)
def conv_lstm_cell(this: Layer, b: Build, *args: Any) -> Any:
    """Only inside of ConvLSTM layers."""
    return this.refuse("a convolutional cell outside of its layer")


MOST_STEPS = 1000  # that are written out one by one


@layer("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", words=f"{_CONV} {_LAYER}", children=_conv_cell, mask="own")
def conv_lstm(this: Layer, b: Build, x: Tensor, initial_state: Any = None, mask: Any = None) -> Any:
    """An LSTM whose products are convolutions, its steps written out one after the other."""
    cell = this.children[0][1]
    if mask is not None or x.mask is not None:
        this.refuse("a mask of a convolutional LSTM")
    if this.get("time_major"):
        this.refuse("time_major")
    if not this.last():
        this.refuse("a convolutional LSTM with its channels first")
    steps, axes = x.size(1), x.rank - 3
    if steps > MOST_STEPS or steps < 1:
        this.refuse(f"{steps} steps of a convolutional LSTM")
    size = this.numbers("kernel_size", axes)
    filters = int(this.config["filters"])
    kernel, recurrent = (cell.weight(n, *size, None, 4 * filters) for n in ("kernel", "recurrent_kernel"))
    padding = "SAME_UPPER" if this.get("padding", "valid") == "same" else "VALID"
    place: dict[str, Any] = {
        "strides": this.numbers("strides", axes),
        "dilations": this.numbers("dilation_rate", axes),
        "auto_pad": padding,
    }
    last: dict[str, Any] = {"x_last": True, "out_last": True}
    bias = cell.weight("bias", 4 * filters) if "bias" in cell.own else None
    x = b.floats(x)
    folded = b.reshape(x, -1, *(b.shape_of(x, a) for a in range(2, x.rank)))
    wide = b.op(
        "Conv",
        folded,
        b.constant(np.moveaxis(kernel, (-1, -2), (0, 1)), "kernel"),
        None if bias is None else b.constant(bias, "bias"),
        **place,
        **last,
    )
    wide = b.reshape(wide, b.shape_of(x, 0), steps, *(b.shape_of(wide, a) for a in range(1, wide.rank)))
    weight = b.constant(np.moveaxis(recurrent, (-1, -2), (0, 1)), "recurrent_kernel")
    given = tensors(initial_state)
    h, c = given or (None, None)
    made = []
    for t in range(steps):
        total = b.take(wide, 1, steps - 1 - t if this.get("go_backwards") else t)
        if h is not None:
            total = b.op("Add", total, b.op("Conv", h, weight, auto_pad="SAME_UPPER", **last))
        i, f, g, o = b.many("Split", 4, total, axis=total.rank - 1, num_outputs=4)
        i, f, o = (activated(this, b, v, this.config.get("recurrent_activation", "sigmoid")) for v in (i, f, o))
        g = b.op("Mul", i, activated(this, b, g, this.config.get("activation", "tanh")))
        c = g if c is None else b.op("Add", b.op("Mul", f, c), g)
        h = b.op("Mul", o, activated(this, b, c, this.config.get("activation", "tanh")))
        made.append(h)
    assert h is not None
    assert c is not None
    y = b.concat([b.unsqueeze(v, 1) for v in made], 1) if this.get("return_sequences") else h
    return [y, h, c] if this.get("return_state") else y


def _directions(this: Layer) -> list[tuple[str, Layer]]:
    forward = this.config["layer"]
    backward = this.get("backward_layer")
    if backward is None:
        config = forward["config"]
        backward = {
            **forward,
            "config": {**config, "name": f"backward_{config.get('name')}", "go_backwards": not config.get("go_backwards", False)},
        }
        backward.pop("shared_object_id", None)
    return [("forward_layer", this.child(forward)), ("backward_layer", this.child(backward))]


@layer("Bidirectional", words="layer backward_layer merge_mode", children=_directions, mask="own")
def bidirectional(this: Layer, b: Build, x: Any, initial_state: Any = None, mask: Any = None) -> Any:
    """A layer in both directions; outputs of both are merged, each at its own time."""
    if isinstance(x, (list, tuple)):
        x, *rest = tensors(x)
        initial_state = rest or initial_state
    given = tensors(initial_state)
    handed = x.mask
    layers = [child for _, child in this.children]
    if any(child.kind not in ("SimpleRNN", "GRU", "LSTM", "RNN", "CuDNNGRU", "CuDNNLSTM") for child in layers):
        this.refuse(f"directions of class {layers[0].kind[:40]}")
    mask = _time_mask(b, _mask_for(this, mask, x, given))
    whole, x = bool(layers[0].get("return_sequences")), b.floats(x)
    half = len(given) // 2
    results, states = [], []
    for child, own in zip(layers, (given[:half], given[half:]), strict=True):
        cell = child.children[0][1] if child.children else child
        y, after = over_time(cell, b, x, own, mask, bool(child.get("go_backwards")))
        # Steps that are masked give zeros here, whatever the layers say.
        results.append(y if whole else _last(b, child, y, after, mask, own))
        states += after
    mode = this.config.get("merge_mode", "concat")
    merged: Any
    if mode == "concat":
        merged = b.concat(results, -1)
    elif mode in ("sum", "ave", "mul"):
        merged = b.op("Mul" if mode == "mul" else "Add", *results)
        merged = b.op("Mul", merged, 0.5) if mode == "ave" else merged
    elif mode is None:
        merged = results
    else:
        this.refuse(f"merge_mode {mode!s:.40}")
    masked = [t.masked((mask or handed) if whole else None) for t in tensors(merged)]
    if layers[0].get("return_state"):
        return [*masked, *states]
    return masked if mode is None else masked[0]


def _last(b: Build, child: Layer, y: Tensor, states: list[Tensor], mask: Tensor | None, given: list[Tensor]) -> Tensor:
    if mask is None or not given:
        return _first(states, child)
    # A sequence without any step gives zeros, not the state that it was given.
    any_step = b.cast(b.reduce("Max", b.cast(mask, np.int32), [1], True), BOOL)
    return b.op("Where", any_step, _first(states, child), 0.0)
