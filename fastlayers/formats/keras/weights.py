"""Gives the layers of a model their weights: by object path (.keras), or by layer and order (HDF5 of Keras 1, 2 and 3)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...errors import FormatError
from ..hdf5.file import File
from ..hdf5.types import BFLOAT16
from .layer import Layer

__all__ = ["assign"]

# Groups of a .keras file that hold no layer's weights; seeds of dropout are next to weights.
_IGNORED = re.compile(
    r"(^|/)(seed_generator|optimizer|_?metrics|_?loss_tracker|compile_metrics|_compile_\w+)(/|$)|(^|/)random_seed"
)


def assign(model: Layer, file: File, legacy: bool, where: str) -> None:
    """Puts the weights into the model's layers. Raises FormatError for what is missing or left over."""
    if legacy:
        _Legacy(file, where).model(model)
    else:
        _Paths(file, where).run(model)


class _Paths:
    """``layers/dense_1/vars/0``: containers by the snake case of classes, sublayers by attribute, variables by number."""

    def __init__(self, file: File, where: str) -> None:
        self.where = where
        self.stored = {path: dataset for path, dataset in file.datasets() if not _IGNORED.search(path)}
        self.groups = {path.rsplit("/vars/", 1)[0] if "/vars/" in path else "" for path in self.stored}
        self.visited: set[int] = set()

    def run(self, model: Layer) -> None:
        # Early releases called the container of layers otherwise.
        if any(path.startswith("_layer_checkpoint_dependencies") for path in self.stored):
            self.stored = {p.replace("_layer_checkpoint_dependencies", "layers"): d for p, d in self.stored.items()}
        self.layer(model, "")
        if self.stored:
            names = ", ".join(repr(path[:80]) for path in list(self.stored)[:5])
            raise FormatError(f"{self.where}: has {len(self.stored)} weights that no layer of the model takes, such as {names}")

    def layer(self, layer: Layer, path: str) -> None:
        if id(layer) in self.visited:
            return
        self.visited.add(id(layer))
        prefix = f"{path}/vars/" if path else "vars/"
        for i, name in enumerate((*layer.own, *layer.fixed)):
            dataset = self.stored.pop(f"{prefix}{i}", None)
            if dataset is None:
                raise FormatError(
                    f"{self.where}: layer {'/'.join(layer.path)} ({layer.kind}): has no weight {name!r} at {prefix}{i}"
                )
            layer.values[name] = dataset.read()
        if layer.kind == "Normalization" and layer.own:
            self.stored.pop(f"{prefix}2", None)  # a count
        used: dict[str, int] = {}
        for attribute, child in layer.children:
            if attribute.endswith("/*"):  # a container
                name = snake(child.kind)
                number = used[name] = used.get(name, -1) + 1
                inner = attribute[:-1] + (f"{name}_{number}" if number else name)
            else:
                inner = attribute
            full = f"{path}/{inner}" if path else inner
            head, _, last = full.rpartition("/")
            private = f"{head}/_{last}" if head else f"_{last}"
            if not self._has(full) and self._has(private):
                full = private
            self.layer(child, full)

    def _has(self, path: str) -> bool:
        return any(name.startswith(f"{path}/") for name in self.stored)


# Classes whose exported name, which configurations have, is not the class's.
_CLASSES = {"GroupQueryAttention": "GroupedQueryAttention"}


def snake(name: str) -> str:
    """Keras' `to_snake_case` of a class."""
    name = _CLASSES.get(name, name)
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


class _Legacy:
    """``model_weights/<layer>`` with the attribute weight_names: trained weights of the layer and all in it, then the others."""

    def __init__(self, file: File, where: str) -> None:
        self.file, self.where = file, where
        self.root = "model_weights" if file.find("model_weights") is not None else ""

    def model(self, model: Layer) -> None:
        names = self._names(self.root, "layer_names")
        layers = {child.name: child for _, child in model.children}
        for name in names:
            path = f"{self.root}/{name}" if self.root else name
            stored = self._names(path, "weight_names")
            if not stored:
                continue
            if name not in layers:
                raise FormatError(f"{self.where}: has weights of a layer {name[:80]!r}, which the model does not have")
            self.layer(layers[name], path, stored)
        for child in layers.values():
            _check(child, self.where)

    def _names(self, path: str, attribute: str) -> list[str]:
        if self.file.find(path) is None:
            raise FormatError(f"{self.where}: has no group {path[:80]!r}")
        found = self.file.attributes(path)
        if attribute in found:
            value = found[attribute]
            return list(value) if isinstance(value, list) else []
        names: list[str] = []
        i = 0
        while isinstance(found.get(f"{attribute}{i}"), list):
            names += found[f"{attribute}{i}"]
            i += 1
        return names

    def layer(self, layer: Layer, path: str, stored: list[str]) -> None:
        places = _ordered(layer)
        if len(places) != len(stored):
            raise FormatError(
                f"{self.where}: layer {'/'.join(layer.path)} ({layer.kind}): the file has {len(stored)} weights "
                f"({', '.join(name[:40] for name in stored[:6])}), the layer takes {len(places)}"
            )
        for (owner, name), label in zip(places, stored, strict=True):
            dataset = self.file.dataset(f"{path}/{label}")
            if dataset is None:
                raise FormatError(f"{self.where}: has no dataset {label[:80]!r} of layer {layer.name[:80]!r}")
            if dataset.kind.codec is None and dataset.kind.size == 2 and "bfloat16" in str(owner.config.get("dtype")):
                dataset.kind = BFLOAT16  # of which HDF5 knows nothing but the size
            array = dataset.read()
            known = owner.values.get(name)
            # A layer that is used twice is stored twice.
            if known is not None and not np.array_equal(known, array, equal_nan=known.dtype.kind == "f"):
                raise FormatError(f"{self.where}: layer {'/'.join(owner.path)}: two different weights {name!r}")
            owner.values[name] = array


def _ordered(layer: Layer) -> list[tuple[Layer, str]]:
    """Every weight of a layer and those in it: what is trained first."""
    every = _weights(layer, bool(layer.config.get("trainable", True)), set())
    return [(o, n) for o, n, trained in every if trained] + [(o, n) for o, n, trained in every if not trained]


def _weights(layer: Layer, trained: bool, seen: set[Any]) -> list[tuple[Layer, str, bool]]:
    if id(layer) in seen:
        return []
    seen.add(id(layer))
    trained = trained and bool(layer.config.get("trainable", True))
    # Of a layer with weights of 8 bits the bias alone is trained.
    found = [(layer, name, trained and (name == "bias" or not layer.quantized)) for name in layer.own]
    found += [(layer, name, False) for name in layer.fixed if not (layer.kind == "SpectralNormalization" and name == "kernel")]
    if layer.kind == "Normalization" and layer.own:
        found.append((layer, "count", False))
    for _, child in layer.children:
        found += _weights(child, trained, seen)
    return found


def _check(layer: Layer, where: str) -> None:
    for name in (*layer.own, *layer.fixed):
        if name not in layer.values and not (layer.kind == "SpectralNormalization" and name == "kernel"):
            raise FormatError(f"{where}: layer {'/'.join(layer.path)} ({layer.kind}): the file has no weight {name!r} for it")
    for _, child in layer.children:
        _check(child, where)
