"""What loads, compiles and runs networks: files, models, streams, sessions, graphs, and the settings of the process."""

from __future__ import annotations

import asyncio
import atexit
import functools
import io
import os
import shutil
import tempfile
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.kernels import dispatch

from .calls import Call, of
from .layer_calls import filled, numbers

__all__ = ["models"]


def _net() -> fl.Sequential:
    net = fl.Sequential(fl.Linear(6, 4), fl.ReLU(), fl.Linear(4, 3))
    filled(net)
    return net


@functools.cache
def models() -> list[Call]:
    """All of them; files are in memory or in a folder of their own."""
    net, x = _net(), numbers(2, 6)
    model = fl.compile(net, fl.graph.Input("x", ("n", 6)))
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "model.safetensors")
    model.save(path)
    with open(path, "rb") as file:
        content = file.read()
    convolution = fl.Conv1d(2, 3, 3)
    filled(convolution)
    piece = numbers(1, 2, 4)
    flow = fl.compile(convolution, fl.graph.Input("x", (1, 2, "time")))
    graph = fl.graph.trace(net, fl.graph.Input("x", ("n", 6)))
    threads = fl.get_num_threads()

    def saved(**given: Any) -> Any:
        here = os.getcwd()
        try:
            os.chdir(folder)  # names of the pool are relative
            return model.save(**given)
        finally:
            os.chdir(here)

    def opened(source: Any) -> Any:
        return fl.load(io.BytesIO(source) if source is content else source)(x)

    def with_threads(n: Any) -> Any:
        try:
            fl.set_num_threads(n)
            return fl.get_num_threads()
        finally:
            fl.set_num_threads(threads)

    def using(name: Any) -> Any:
        with dispatch.switch(name):
            return fl.kernels.info()["threads"]

    def streamed(axis: Any) -> Any:
        return flow.stream(axis=axis)(piece)

    def begun(values: Any) -> Any:
        stream = flow.stream(axis="time")
        stream(piece)
        stream.state = values
        return stream(piece)

    state = flow.stream(axis="time")
    state(piece)
    calls = [
        of("load", fl.load, lambda **a: fl.load(**a)(x), source=content),
        of("load(path)", fl.load, lambda **a: fl.load(**a)(x), source=path, max_rounds=100),
        of("load(file)", lambda source: None, opened, source=content),
        of("load_weights", fl.load_weights, source=content),
        of("load_weights(path)", fl.load_weights, source=path),
        of("compile", fl.compile, lambda function, example, **a: fl.compile(function, example, **a)(x), function=net, example=x),
        of("model()", lambda x, out: None, lambda x, out: model(x, out=out), x=x, out=None),
        of("model(out)", lambda x, out: None, lambda x, out: model(x, out=out), x=x, out=np.zeros((2, 3), np.float32)),
        of("model.run", fl.Model.run, model.run, feeds={"x": x}),
        of("model.run(x)", lambda x: None, lambda x: model.run({"x": x}), x=x),
        of("model.prepare", fl.Model.prepare, model.prepare, shapes={"x": (3, 6)}),
        of("model.run(alone)", lambda feeds: None, lambda feeds: model.run(feeds), feeds=x),
        of("model.arun", fl.Model.arun, lambda **a: asyncio.run(model.arun(**a)), feeds={"x": x}, timeout=60),
        of("model.prepare(x)", lambda x: None, lambda x: model.prepare({"x": x}), x=(3, 6)),
        of("model.summary", fl.Model.summary, model.summary, shapes={"x": (2, 6)}),
        of("model.kernel_names", fl.Model.kernel_names, model.kernel_names, feeds={"x": x}),
        of("model.save", fl.Model.save, saved, path="saved.safetensors"),
        of("model.num_threads", lambda n: None, lambda n: setattr(fl.load(content), "num_threads", n), n=2),
        of("model.stream", fl.Model.stream, flow.stream, axis="time"),
        of("model.stream(size)", fl.Model.stream, lambda **a: flow.stream(**a)(piece), size=3, overlap=1),
        of("model.stream(axis)()", streamed, axis="time"),
        of("stream()", lambda x: None, lambda x: flow.stream(axis="time")(x), x=piece),
        of("stream.run", lambda feeds: None, lambda feeds: flow.stream(axis="time").run(feeds), feeds={"x": piece}),
        of("stream.state", begun, values=state.state),
        *(
            of(f"stream.state[{name!r}]", lambda value: None, lambda value, n=name: begun({**state.state, n: value}), value=value)
            for name, value in state.state.items()
        ),
        of("set_num_threads", fl.set_num_threads, with_threads, n=2),
        of("kernels.use", lambda name: None, using, name="reference"),
        of("graph.Input", fl.graph.Input, name="x", shape=("n", 4)),
        of("graph.trace", lambda function, x: None, lambda function, x: fl.graph.trace(function, x), function=net, x=x),
        of("graph.execute", fl.graph.execute, graph=graph, feeds={"x": x}),
        of("operator", fl.operator, _declared, name="fuzzed"),
    ]  # fmt: skip
    return [call._replace(compared=False, files=True) for call in calls]


def _declared(**given: Any) -> Any:
    from fastlayers.model.custom import forget

    def twice(x: Any) -> Any:
        return 2 * x

    result = fl.operator(**given)(twice)(np.ones(3))
    if isinstance(given.get("name"), str):
        forget(given["name"], given.get("domain", ""))
    return result
