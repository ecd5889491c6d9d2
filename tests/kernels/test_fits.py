"""Kernels believe no packed weights: every size that these fix is compared, in every variant, direct and as a step."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.fits import FITS
from fastlayers.kernels.table import KERNELS, KINDS, Activation, GruOptions, LstmOptions, RnnOptions
from fastlayers.kernels.tree_layout import SUM

from ..each import each

IDENTITY = Activation(0)
ONES = (1, 1, 1)
ENTRIES = {item.name: item for item in KERNELS}


class Small(NamedTuple):
    """A small call: arguments by name, "packed" as the pack kernel's. Sizes differ from axis to axis."""

    kernel: str
    label: str
    packed: dict[str, Any]
    arguments: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.kernel} {self.label}".strip()


def floats(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(str(shape).encode()))
    return rng.standard_normal(shape).astype(np.float32)


def bytes_of(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int64).astype(np.uint8).reshape(shape)


def placed(array: np.ndarray, last: bool) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if last else array


def convolutions() -> Iterator[Small]:
    x, pads, strided = floats(2, 6, 3, 7, 9), (0, 0, 1, 1, 0, 0), (1, 2, 1)
    weight, out = floats(10, 3, 2, 3, 3), floats(2, 10, 2, 4, 7)
    for x_last, out_last in itertools.product((False, True), repeat=2):
        layout = f"{'last' if x_last else 'first'} to {'last' if out_last else 'first'}"
        common = {"x_last": x_last, "out_last": out_last, "activation": IDENTITY}
        taps = {"weight": weight, "bias": floats(10), "stride": strided, "dilation": ONES, "groups": 2}
        to = {"out": placed(out, out_last), "residual": placed(out, out_last)}
        yield Small("conv", layout, taps, {**common, "x": placed(x, x_last), **to, "pads": pads, "mode": 0})
        inner = floats(2, 10, 2, 3, 7)  # nothing is padded: read where it is
        given = {"out": placed(inner, out_last), "residual": None, "pads": (0,) * 6, "mode": 0}
        yield Small("conv", f"{layout}, no pads", taps, {**common, "x": placed(x, x_last), **given})
        yield Small(
            "conv_transpose", layout, {**taps, "weight": floats(6, 5, 2, 3, 3), "bias": floats(10)},
            {**common, "x": placed(x, x_last), "out": placed(floats(2, 10, 4, 14, 11), out_last), "pads": (0,) * 6},
        )  # fmt: skip
        flat = {"weight": floats(10, 3, 1, 3, 3), "bias": floats(10), "tile": 2, "groups": 2, "stride": ONES}
        plane = {"out": placed(floats(2, 10, 3, 7, 7), out_last), "residual": None, "pads": pads}
        yield Small("winograd", layout, flat, {**common, "x": placed(floats(2, 6, 3, 7, 9), x_last), **plane})
        deep = {"weight": floats(10, 3, 2, 3, 3), "bias": floats(10), "tile": 4, "groups": 2, "stride": ONES}
        space = {"out": placed(floats(2, 10, 4, 7, 7), out_last), "residual": None, "pads": (1, 1, 1, 1, 0, 0)}
        yield Small("winograd", f"{layout}, deep", deep, {**common, "x": placed(floats(2, 6, 3, 7, 9), x_last), **space})
        quantized = {
            "weight": weight.astype(np.int8), "zero": np.ones(10, np.int8), "factor": floats(10), "bias": np.ones(10, np.int32),
            "shift": floats(10), "stride": strided, "dilation": ONES, "groups": 2,
        }  # fmt: skip
        kinds = {"source": KINDS["uint8"], "target": KINDS["float32"], "value": 0}
        points = {"x_zero": np.ones(1, np.uint8), "x_scale": np.ones(1, np.float32)}
        where = {"x": placed(bytes_of(2, 6, 3, 7, 9), x_last), "out": placed(out, out_last), "pads": pads}
        yield Small("qconv", layout, quantized, {"x_last": x_last, "out_last": out_last, **where, **points, **kinds})
    for last in (False, True):
        taps = {"weight": floats(12, 1, 2, 3, 3), "bias": floats(12), "stride": strided, "dilation": ONES, "channels": 6}
        out = floats(2, 12, 2, 4, 7)
        given = {"x": placed(x, last), "out": placed(out, last), "residual": placed(out, last), "pads": pads, "mode": 0}
        yield Small("depthwise", "last" if last else "first", taps, {**given, "channels_last": last, "activation": IDENTITY})


def recurrent() -> Iterator[Small]:
    t, b, i, h, q = 5, 3, 7, 6, 4
    for kind, gates, options in (("lstm", 4, LstmOptions()), ("gru", 3, GruOptions()), ("rnn", 1, RnnOptions())):
        for first, apart, masked in ((False, False, False), (True, True, True), (False, True, False), (True, False, True)):
            outs = q if kind == "lstm" and apart else h  # projected
            packed = {
                "w_ih": floats(2, gates * h, i), "w_hh": floats(2, gates * h, outs), "b_ih": floats(2, gates * h),
                "b_hh": floats(2, gates * h), "peephole": floats(2, 3 * h), "w_hr": floats(2, q, h) if outs == q else None,
                "options": options,
            }  # fmt: skip
            out = (b, t, 2, outs) if apart and first else (t, 2, b, outs) if apart else (b, t, 2 * h) if first else (t, b, 2 * h)
            yield Small(
                kind, f"{'batch' if first else 'time'} first{', apart' if apart else ''}", packed,
                {
                    "x": floats(b, t, i) if first else floats(t, b, i), "h0": floats(2, b, outs), "c0": floats(2, b, h),
                    "lengths": np.ones((b, t), bool) if masked else np.full(b, t, np.int32), "out": floats(*out),
                    "hn": floats(2, b, outs), "cn": floats(2, b, h), "batch_first": first,
                    "directions_apart": apart, "reverse": False,
                },
            )  # fmt: skip


def dynamic() -> Iterator[Small]:
    t, b, i, h = 5, 3, 7, 6
    g = 4 * h
    packed = {
        "w_ih": bytes_of(2, g, i), "w_hh": bytes_of(2, g, h), "ih_zero": bytes_of(2, g), "hh_zero": bytes_of(2, g),
        "ih_scale": floats(2, g), "hh_scale": floats(2, g), "b": floats(2, g), "peephole": floats(2, 3 * h),
        "options": LstmOptions(),
    }  # fmt: skip
    arrays = {
        "x": floats(t, b, i), "h0": floats(2, b, h), "c0": floats(2, b, h), "lengths": np.full(b, t, np.int32),
        "out": floats(t, 2, b, h), "hn": floats(2, b, h), "cn": floats(2, b, h), "reverse": False,
    }  # fmt: skip
    yield Small("dynamic_lstm", "", packed, arrays)


def tables(size: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(2 * n).reshape(2, n) % size, floats(2, n)


def others() -> Iterator[Small]:
    plain = {"x": floats(3, 10), "out": floats(3, 20), "residual": floats(3, 20), "activation": IDENTITY}
    yield Small("linear", "", {"weight": floats(20, 10), "bias": floats(20)}, plain)
    packed = {"weight": bytes_of(20, 1, 8), "scale": floats(20, 1), "zero": floats(20, 1), "bias": floats(20)}
    call = {"x": floats(3, 10), "out": floats(3, 20), "mode": 0, "activation": IDENTITY}
    yield Small("nbits", "", {**packed, "size": 10, "bits": 4, "codes": None}, call)
    for inner in (3, 20):  # few values next to each other are taken as positions
        axes = (None, tables(4, 6), tables(5, 8))
        given = {"x": floats(3, 2, 4, 5, inner), "out": floats(3, 2, 6, 8, inner)}
        yield Small("resize", f"{inner} inner", {"axes": axes, "size": (2, 4, 5, inner)}, given)

    given = {"x": floats(3, 40), "window": floats(12), "out": floats(3, 5, 14), "stride": 7}
    yield Small("fft", "", {"size": 12, "op": 2, "scale": 1.0}, given)
    nodes = {"feature": [0, 6], "split": [0.5, -1.0], "modes": [0, 0], "yes": [1, -1], "no": [-2, -3], "missing": [0, 1]}
    leaves = {"starts": [0, 4, 8, 12], "targets": [0, 1, 2, 3] * 3, "weight": np.arange(12.0)}
    trees = {"roots": np.array([0]), **{name: np.array(values) for name, values in {**nodes, **leaves}.items()}}
    trees |= {name: trees[name].astype(np.float32) for name in ("split", "weight")}
    given = {"x": floats(3, 9), "base": np.ones(4), "out": floats(3, 4), "op": SUM}
    yield Small("tree_ensemble", "", {**trees, "members": None, "size": 4}, given)


CASES = [*convolutions(), *recurrent(), *dynamic(), *others()]
SPACE = frozenset("dhwxyz")
LOOSE = frozenset({"x_zero", "x_scale"})


def packed_of(small: Small) -> Any:
    pack = ENTRIES[f"{small.kernel}_pack"]
    return dispatch.kernel(pack.name)(*(small.packed[name.split("__")[0]] for name in pack.arguments))


def layout(small: Small) -> int:
    """The number of the case's layout flags."""
    flags = [
        small.arguments[n]
        for n in ("x_last", "out_last", "channels_last", "batch_first", "directions_apart")
        if n in small.arguments
    ]
    return sum(flag << i for i, flag in enumerate(flags))


def axes_of(small: Small, name: str) -> str:
    layouts = FITS[small.kernel].axes[name]
    ways = layouts[layout(small) if len(layouts) > 1 else 0].split("|")
    return next(way for way in ways if len(way) == small.arguments[name].ndim)


def checked_axes(small: Small) -> Iterator[tuple[str, int, str]]:
    """(argument, number of its axis, letter): every axis whose size something else says."""
    seen = set(FITS[small.kernel].known)
    windowed = small.kernel not in ("conv_transpose", "resize")
    for name in FITS[small.kernel].axes:
        if small.arguments.get(name) is None or name in LOOSE:
            continue
        for i, letter in enumerate(axes_of(small, name)):
            if letter in seen or (windowed and letter in "xyz"):
                yield name, i, letter
            seen.add(letter)


def resized(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    shape = list(array.shape)
    shape[axis] = size
    return np.zeros(shape, array.dtype)


def call(small: Small, packed: Any, arguments: dict[str, Any], as_step: bool) -> None:
    entry = ENTRIES[small.kernel]
    values = [packed if n == "packed" else arguments[n.split("__")[0]] for n in entry.arguments]
    if as_step:
        step = dispatch.step(small.kernel)
        assert step is not None
        step(*(v.shape if isinstance(v, np.ndarray) else v for v in values))
    else:
        dispatch.kernel(small.kernel)(*values)


def refused_everywhere(small: Small, as_step: bool, run: bool = True) -> int:
    """Every wrong size of every checked axis raises, and names kernel and argument; how many were tried. `run`: nothing raises
    as it is.
    """
    packed, tried = packed_of(small), 0
    if run:
        call(small, packed, small.arguments, as_step)
    for name, axis, letter in checked_axes(small):
        array = small.arguments[name]
        size = array.shape[axis]
        for wrong in {size - 1, size + 1, 2 * size, 0} - {size}:
            arguments = {**small.arguments, name: resized(array, axis, wrong)}
            what = f"{small.id}: {name} with {letter} of {wrong} instead of {size}"
            try:
                call(small, packed, arguments, as_step)
            except ShapeError as error:
                text = str(error)
                assert text.startswith(f"{small.kernel}: "), (what, text)
                assert str(wrong) in text, (what, text)
            else:
                pytest.fail(f"{what} was taken")
            tried += 1
        for flat in (array.reshape(-1), array[None]):  # another number of axes
            if flat.ndim != array.ndim and not (name == "lengths" and flat.ndim == 2):
                with pytest.raises(ShapeError, match=rf"^{small.kernel}: {name} has shape"):
                    call(small, packed, {**small.arguments, name: flat}, as_step)
    return tried


@each("small", CASES, ids=lambda small: small.id)
def test_packed_weights_of_other_sizes_are_refused(small: Small, variant: str) -> None:
    assert refused_everywhere(small, False) > 5


@each("small", CASES, ids=lambda small: small.id)
@pytest.mark.without("reference", "jit", "cuda")  # steps are the compiled engine's
def test_no_step_is_made_for_packed_weights_of_other_sizes(small: Small, variant: str) -> None:
    assert refused_everywhere(small, True) > 5


def test_every_kernel_with_packed_weights_has_a_case() -> None:
    want = {item.name for item in KERNELS if "packed" in item.arguments}
    assert {small.kernel for small in CASES} == want <= set(FITS)


def test_axes_are_those_of_the_table() -> None:
    for name, fit in FITS.items():
        arrays = [a.split("__")[0] for i, a in enumerate(ENTRIES[name].arguments) if i in ENTRIES[name].arrays]
        assert list(fit.axes) == arrays, name


@pytest.mark.parametrize(
    "small", [s for s in CASES if s.kernel in ("conv", "depthwise", "winograd", "qconv")], ids=lambda s: s.id
)
def test_a_kernel_of_another_size_is_refused(small: Small, variant: str) -> None:
    # The channels fit, but windows would reach past x, or leave some of it out.
    if small.kernel == "winograd":
        before, after = small.arguments["pads"][:2]
        for pads in ((before, after, 2, 1, 0, 0), (before, after + 1, 1, 1, 0, 0)):
            if before or pads[1] == after:
                with pytest.raises(ShapeError, match=r"^winograd: out has shape"):
                    call(small, packed_of(small), {**small.arguments, "pads": pads}, False)
        if before:
            return
        deeper = np.zeros_like(small.arguments["out"], shape=[n + 2 * (n == 3) for n in small.arguments["out"].shape])
        with pytest.raises(ShapeError, match=r"^winograd: pads are \(1, 1, 1, 1, 0, 0\): expected none before"):
            call(small, packed_of(small), {**small.arguments, "out": deeper, "pads": (1, 1, 1, 1, 0, 0)}, False)
        return
    for change in ({"weight": np.repeat(small.packed["weight"], 2, -1)}, {"stride": ONES}, {"dilation": (1, 1, 2)}):
        other = small._replace(packed={**small.packed, **change})
        with pytest.raises(ShapeError, match=rf"^{small.kernel}: out has shape"):
            call(other, packed_of(other), small.arguments, False)


# What pack kernels refuse: a wrong size of each of their arrays, and values that make no windows or groups.
PACKS = {small.kernel: small for small in CASES}
WRONG = {
    "groups": (-1, 0, 4), "channels": (-1, 0, 5), "stride": ((0, 1, 1), (1, 1)), "dilation": ((1, 1, 0), (1, -1, 1)),
    "tile": (3, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKS)
def test_pack_kernels_look_at_what_they_get(name: str, variant: str) -> None:
    small, tried = PACKS[name], 0
    fit = FITS.get(f"{name}_pack")
    arguments = {a.split("__")[0] for a in ENTRIES[f"{name}_pack"].arguments}
    for argument in list(fit.axes)[1:] if fit else ():
        array = small.packed[argument]
        for wrong in () if array is None else (array.shape[0] - 1, array.shape[0] + 1, 0):
            with pytest.raises(ShapeError, match=rf"^{name}_pack: "):
                packed_of(small._replace(packed={**small.packed, argument: resized(array, 0, wrong)}))
            tried += 1
    for argument, values in WRONG.items():
        for value in values if argument in arguments else ():
            with pytest.raises(ShapeError, match=rf"^{name}_pack: {argument} "):
                packed_of(small._replace(packed={**small.packed, argument: value}))
            tried += 1
    assert tried > 2 or name in ("fft", "resize", "tree_ensemble")  # which have tests of their own


@pytest.mark.parametrize("place", [-1, 4, 1 << 40])
def test_tables_of_resampling_name_places_of_x(place: int, variant: str) -> None:
    index, weight = tables(4, 6)
    index[1, 2] = place
    with pytest.raises(ShapeError, match=rf"^resize_pack: place {place} of axis h is out of range: expected 0 to 3"):
        dispatch.kernel("resize_pack")((None, (index, weight), None), (2, 4, 5, 3))


def test_layers_of_three_directions_are_refused(variant: str) -> None:
    with pytest.raises(ShapeError, match="1 or 2 directions"):
        dispatch.kernel("rnn_pack")(floats(3, 4, 5), floats(3, 4, 4), None, None, RnnOptions((Activation(9),) * 3))


def test_calls_that_fit_are_remembered_in_bounds() -> None:
    from fastlayers.kernels import fits

    with fl.kernels.use("reference"):
        small = next(s for s in CASES if s.kernel == "linear")
        packed = packed_of(small)
        for rows in range(fits._MOST + 50):
            arguments = {**small.arguments, "x": floats(rows, 10), "out": np.empty((rows, 20), np.float32), "residual": None}
            call(small, packed, arguments, False)
    assert 0 < len(fits._fitted) <= fits._MOST
