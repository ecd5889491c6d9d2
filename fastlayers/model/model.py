"""`Model`: a loaded or compiled network that is called like a function. Immutable, and safe to call from any number of
threads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .._arguments import as_mapping, as_names, shown
from .._deadline import Deadline
from .._held import models
from .._lazy import imported
from .._locks import Lock
from .._tuples import NamedTuple
from ..errors import ArgumentError, DTypeError, refuse_shortage_in
from ..ir.graph import Graph
from ..kernels import dispatch
from ..operators import MAX_ROUNDS
from ..program import Program
from ..program.memory import LARGEST
from . import feeds as _feeds
from ._branches import made
from ._stand_ins import Closed, NoRunner, coded, growing
from .origin import Origin, reference, reload
from .specs import MapSpec, Specs, TensorSpec, specs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..report import Report
    from ..report.quantized import Quantization
    from .stream import Stream
    from .stream_windows import WindowStream

__all__ = ["Model", "Options", "TensorSpec"]

# Programs for other outputs than the graph's own, such as intermediate results, that a model keeps.
KEPT = 8


class Options(NamedTuple):
    """Options that a model was loaded with; see `load`."""

    optimize: bool = True
    strict: bool = False
    native: bool = False
    bodies: bool = True
    rounds: int = MAX_ROUNDS
    most: int = LARGEST
    half: int = 0
    bits: int = 0
    streaming: bool = False
    variant: str = ""


@refuse_shortage_in(
    "_run", "_program", "batch_axes", "export", "kernel_names", "prepare", "profile", "report", "save", "stream", "summary"
)
class Model:
    """A network with its weights, ready to run. Made by `load` and `compile`.

    It never changes, holds no state between calls, and may be called from any number of threads at once. It keeps to the kernel
    variant that was chosen when it was made. For every new set of input sizes it makes a binding, once; the last ones are
    retained.

    >>> import numpy as np, fastlayers as fl
    >>> model = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", ("n", 2)))
    >>> model(np.array([[-1.0, 2.0]]))
    array([[0., 2.]], dtype=float32)
    >>> model.inputs
    (TensorSpec(name='x', shape=('n', 2), dtype=dtype('float32')),)
    """

    # What an ONNX file says of itself besides its metadata, for `InferenceSession`.
    _about: Mapping[str, Any] = {}
    # The mapped file that it was loaded from, for pickles.
    _origin: Origin | None = None
    quantization: Quantization | None = None  #: the report of `fl.quantize`: a table (``print``) and a page (``html()``)

    def __init__(
        self,
        graph: Graph,
        options: Options = Options(),  # noqa: B008
        metadata: Mapping[str, str] | None = None,
        packed: Mapping[str, np.ndarray] | None = None,
        device: str = "cpu",
        variant: dispatch.Variant | None = None,
    ) -> None:
        if not isinstance(graph, Graph):
            raise DTypeError(f"Model: graph is of type {type(graph).__name__}: expected a Graph; fastlayers.load reads files")
        self._graph, self._options = graph, options
        found = variant or dispatch.variant("cuda" if device == "cuda" else options.variant)
        if variant is None and not options.variant:
            models.add(self)
        self._variant = found._replace(strict=True) if options.strict else found
        self._lock = Lock()
        self._programs: dict[tuple[str, ...], Program] = {}
        self._threads = 0
        self.metadata: dict[str, str] = dict(metadata or {})
        self.inputs, self.outputs = specs(graph.inputs), specs(graph.outputs)
        self._names = tuple(value.name for value in graph.outputs)
        self._main = self._program(self._names, packed)
        self._runner: Any = NoRunner() if self._main.runner is None else self._main.runner
        self._growing = growing(graph, self._main)
        if self._growing is not None:
            self._runner = NoRunner()
        elif (found := coded(graph, options, self._variant)) is not None:
            self._runner = self._growing = found

    # ---- running ----------------------------------------------------------------------------------------------------

    @overload
    def __call__(self, *arrays: Any, out: np.ndarray, timeout: float | None = None, **named: Any) -> np.ndarray: ...
    @overload
    def __call__(
        self, *arrays: Any, out: Sequence[np.ndarray] | None = None, timeout: float | None = None, **named: Any
    ) -> Any: ...
    def __call__(self, *arrays: Any, out: Any = None, timeout: float | None = None, **named: Any) -> Any:
        """Runs on arrays given in the order of `inputs`, or by their names: ``model(x)`` or ``model(x=x)``.

        Args:
            *arrays: one per input: anything that `np.asarray` takes, torch's tensors, and what has ``__dlpack__``. Booleans,
                integers and floats are converted to floats, booleans and integers to integers that can hold them. For a scalar
                (shape ``()``) an array of exactly one element will do.
            out: the output's own memory: an array, or a sequence of them; None for fresh ones.
            timeout: seconds that the run may take; None for no limit. See `run`.
            **named: the arrays, where they are given by name.

        Returns:
            One array, or a tuple of them if there are several outputs: fresh, writable, C-contiguous.

        Raises:
            TimeoutError: the run is not done after `timeout` seconds.
            ArgumentError: too few or many arrays, a shape does not fit, or the network cannot take these sizes.
            DTypeError: an array is of another kind than its input.
        """
        if named:
            if arrays:
                told = f"{', '.join(named)} by name after {len(arrays)} in order"
                raise DTypeError(f"call: {told}: expected all of {self.inputs.names} in one of both ways")
            arrays = tuple(_feeds.by_name(self._graph.inputs, named, "call"))
        if out is None and timeout is None:
            found = self._runner.call(arrays)
            if found is not None:
                return found[0] if len(found) == 1 else found
        if timeout is not None:
            with Deadline(timeout):
                return self(*arrays, out=out)
        if any(isinstance(a, Mapping) for a in arrays) and not any(isinstance(spec, MapSpec) for spec in self.inputs):
            raise DTypeError("call: a dict was given: expected arrays in the order of `inputs`; `run` takes them by name")
        if len(arrays) != len(self.inputs):
            names = self.inputs.names
            raise ArgumentError(f"call: {len(arrays)} arrays were given: expected {len(names)}, for {names}")
        if out is not None:
            if not isinstance(out, (np.ndarray, tuple, list)):
                raise DTypeError(f"call: out is of type {type(out).__name__}: expected an array, or a tuple or list of them")
            given = [out] if isinstance(out, np.ndarray) else list(out)
            if len(given) != len(self._names):
                raise ArgumentError(f"call: out has {len(given)} arrays: expected {len(self._names)}")
            out = dict(zip(self._names, given, strict=True))
        results = self._run(self._main, self._names, list(arrays), out)
        return results[0] if len(results) == 1 else tuple(results)

    def kernel_names(self, feeds: Mapping[str, Any]) -> set[str]:
        """The kernels that run for inputs of these shapes; none are known if the network runs in stages."""
        from ..operators.builder import Call
        from .summary import bound

        plan = bound(self, feeds).plan
        return set() if plan is None else {call.kernel for call in plan.calls if isinstance(call, Call)}

    def run(
        self,
        feeds: Mapping[str, Any] | ArrayLike,
        outputs: Sequence[str] | None = None,
        *,
        out: Mapping[str, np.ndarray] | None = None,
        timeout: float | None = None,
    ) -> dict[str, np.ndarray]:
        """Runs on arrays given by name.

        Ctrl-C in the main thread, and a deadline, end a run within some milliseconds, between its steps or the tasks that a
        step is divided into (a step of numpy, and a kernel of the variants "reference" and "jit", are done to their end). The
        model works afterwards; arrays of `out` may have been written in part.

        Args:
            feeds: a dict with one array for every input, exactly; or the array alone, if there is one input. Dtypes are converted
                as in calls. Where the model declares a scalar (shape ``()``), an array of exactly one element is taken too,
                whatever its axes: ``sr`` of silero-vad as ``np.array([16000])``.
            outputs: names of the wanted results, intermediate ones of the graph included; the model's outputs by default.
            out: arrays that results are written to, by name: of the right shape and dtype, C-contiguous, writable.
            timeout: seconds that the run may take; None for no limit.

        Returns:
            A dict in the order of `outputs`. Arrays are fresh, writable and C-contiguous, or those of `out`; but what a decoder
            makes of a cache that it is given (`present` of a `past` that is not empty) is a read-only view, of which one
            dimension has gaps. Given back as it is, it grows where it is; given again, or an older one, it is copied.

        Raises:
            ArgumentError: a name is missing or unknown, a shape does not fit, or the network cannot take these sizes.
            DTypeError: an array is of another kind than its input.
            TimeoutError: the run is not done after `timeout` seconds.
        """
        if outputs is None and out is None and timeout is None:
            found = self._runner.run(feeds)
            if found is not None:
                return found  # type: ignore[no-any-return]
            made = self._main.again(feeds, self._threads)
            if made is not None:
                return dict(zip(self._names, made, strict=True))
        if timeout is not None:
            with Deadline(timeout):
                return self.run(feeds, outputs, out=out)
        if isinstance(outputs, Mapping):
            raise DTypeError(
                "run: outputs is a dict: expected names. onnxruntime takes names first, and so does "
                "fastlayers.ort.InferenceSession; here it is model.run({'x': x}), or model.run({'x': x}, ['y'])"
            )
        if isinstance(outputs, str):
            raise DTypeError(f"run: outputs is the str {outputs!r}: expected a list of names, such as [{outputs!r}]")
        names = self._names if outputs is None else as_names("run", "outputs", outputs)
        if out is not None:
            as_mapping("run", "out", out)
        if len(self.inputs) == 1 and not isinstance(feeds, Mapping):
            feeds = {self.inputs[0].name: feeds}
        arrays = _feeds.by_name(self._graph.inputs, feeds)
        program = self._main if names == self._names else self._program(names)
        return dict(zip(names, self._run(program, names, arrays, out), strict=True))

    async def arun(
        self,
        feeds: Mapping[str, Any] | ArrayLike,
        outputs: Sequence[str] | None = None,
        *,
        out: Mapping[str, np.ndarray] | None = None,
        timeout: float | None = None,
    ) -> dict[str, np.ndarray]:
        """`run` for coroutines: it happens in another thread, and the event loop goes on meanwhile.

        As many runs go on at once as one call may use threads (`get_num_threads`); others wait, which counts as time. A run that
        nothing waits for any more, since its task was cancelled, is not begun, or ends within some 20 milliseconds (a step of
        numpy is done to its end). Arrays must not be changed before it is done.

        Args, returns, raises: as `run`.

        >>> import asyncio, numpy as np, fastlayers as fl
        >>> model = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", (2,)))
        >>> asyncio.run(model.arun({"x": np.array([-1.0, 2.0])}, timeout=60))
        {'relu': array([0., 2.], dtype=float32)}
        """
        hop = imported(f"{__package__}.hop")

        def run(left: float | None) -> dict[str, np.ndarray]:
            return self.run(feeds, outputs, out=out, timeout=left)

        return await hop.in_thread(run, timeout)  # type: ignore[no-any-return]

    def _run(
        self, program: Program, names: tuple[str, ...], given: list[Any], out: Mapping[str, np.ndarray] | None
    ) -> Sequence[np.ndarray]:
        if self._growing is not None and out is None and program is self._main:
            found = self._growing.run(given, self._threads)
            if found is not None:
                return found  # type: ignore[no-any-return]
        if program.gpu is None:
            arrays = [_feeds.convert(value, array) for value, array in zip(self._graph.inputs, given, strict=True)]
        else:
            arrays = _feeds.on_device(self._graph, program.by_value, given, out)
        binding = program.binding(arrays)
        if out is None:
            return binding.run(arrays, None, self._threads)
        from ._outs import into

        return into(binding, arrays, names, out, self._threads)

    def _program(self, names: tuple[str, ...], packed: Mapping[str, np.ndarray] | None = None) -> Program:
        """The program that gives these values of the graph."""
        with self._lock:
            found = self._programs.get(names)
            if found is None:
                graph = (
                    self._graph if names == self._names else imported("fastlayers.model.values").with_outputs(self._graph, names)
                )
                found = made(graph, self._options, self._variant, packed)
                others = [key for key in self._programs if key != self._names]
                if len(others) >= KEPT:
                    del self._programs[others[0]]
                self._programs[names] = found
            return found

    def prepare(self, shapes: Mapping[str, Any] | Sequence[Any]) -> None:
        """Makes the binding for these sizes now instead of at the first call.

        Args:
            shapes: a shape for every input, by name or in their order, or the shape alone if there is one input; an array
                instead where values decide sizes (`sr` of silero-vad).

        Raises:
            ArgumentError: a name is missing or unknown, a shape does not fit, or the network cannot take these sizes.
        """
        self._main.binding(self._placeholders(shapes))

    def _placeholders(self, shapes: Mapping[str, Any] | Sequence[Any], what: str = "prepare") -> list[np.ndarray]:
        """Arrays of these shapes that take no memory; arrays among `shapes` are taken as they are."""
        return _feeds.placeholders(self._graph, self._main.by_value, shapes, what)

    @overload
    def stream(
        self,
        *,
        size: int,
        overlap: int = 0,
        batch: int | None = None,
        state: Mapping[str, str] | None = None,
        axis: int | str | None = None,
        input: str | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> WindowStream: ...

    @overload
    def stream(
        self,
        *,
        state: Mapping[str, str] | None = None,
        axis: int | str | None = None,
        input: str | Sequence[str] | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> Stream: ...

    def stream(
        self,
        *,
        state: Mapping[str, str] | None = None,
        axis: int | str | None = None,
        input: str | Sequence[str] | None = None,
        initial: Mapping[str, Any] | None = None,
        size: int | None = None,
        overlap: int = 0,
        batch: int | None = None,
    ) -> Stream:
        """The network for a sequence that comes in pieces, with a memory of the earlier ones.

        States that are inputs and outputs are fed back: the pairs are found by their names, or named in `state`. Others are run
        along its axis of time; what needs steps that have not come yet is an error. However a sequence is cut, its results
        have the same bits: the whole's under ``load(streaming=True)``, else the whole's up to rounding (it may run Winograd's).

        A network that takes windows of one length gets them with `size` and `overlap`: pieces have any length, and a call gives a
        list with a result for every window that it completes. silero-vad: ``stream(size=512, overlap=64)``.

        Args:
            state: names of states, ``{input: output}``.
            axis: the axis of time of the input: its number, or the name of its size; found by its name, or as the only one that
                is open, if None.
            input: which input, or inputs, have time, if there are several; others are the same in every call.
            initial: what states begin as, by name; zeros if they are not in it.
            size: how many new steps a window has. `axis` and `input` then say what is cut into windows.
            overlap: how many steps of what came before stand in front of them; zeros at first.
            batch: how many sequences a piece has, with `size`. None: one of samples; of other inputs, as many as the first has.

        Returns:
            The stream, a `WindowStream` if `size` was given. It takes the inputs that are no states, and gives the outputs that
            are none.

        Raises:
            ArgumentError: the states, or the axis, cannot be told; the message says what to name.
            UnsupportedError: a node looks ahead; the message names the first one that does.

        >>> import numpy as np, fastlayers as fl
        >>> net = fl.Conv1d(1, 1, 2, bias=False)
        >>> _ = net.load_state_dict({"weight": np.array([[[-1, 1]]])})
        >>> stream = fl.compile(net, fl.graph.Input("x", (1, 1, "time"))).stream()
        >>> stream(np.array([[[3.0]]])).shape, stream(np.array([[[5.0, 4.0]]]))
        ((1, 1, 0), array([[[ 2., -1.]]], dtype=float32))
        """
        from ._streams import make

        return make(self, state, axis, input, initial, size, overlap, batch)

    def _like(self, graph: Graph) -> Model:
        """Another graph that runs as this one does, as it is written."""
        made = Model(graph, self._options._replace(optimize=False), self.metadata, variant=self._variant)
        made.num_threads = self._threads
        return made

    @property
    def _only(self) -> dict[str, int]:
        return _feeds.only_values(self._graph)

    # ---- what it is -------------------------------------------------------------------------------------------------

    @property
    def variant(self) -> str:
        """The kernel variant that the model runs under, such as ``"aot/x86_v3"``."""
        return self._variant.name

    @property
    def value_names(self) -> list[str]:
        """Every value that the nodes make, in their order: what `run` takes as `outputs`."""
        return imported("fastlayers.model.values").value_names(self._graph)  # type: ignore[no-any-return]

    @property
    def num_threads(self) -> int:
        """The most threads that one call of this model uses; 0 if only the process's limit counts."""
        return self._threads

    @num_threads.setter
    def num_threads(self, number: int) -> None:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or not 0 <= number < 2**31:
            raise ArgumentError(f"num_threads: {shown(number)}: expected an int of at least 0 (0: no limit of its own)")
        self._threads = self._runner.threads = int(number)

    def batch_axes(self, axes: Mapping[str, int] | None = None) -> dict[str, int]:
        """The axis of the batch in every input and output that has one, if the graph shows that rows are independent.

        Requests may then be joined along these axes, run as one and split again: each gets the bits that it would have alone.

        Args:
            axes: the axis of the batch of each input that has one. None: the named size that comes first in an input.

        Raises:
            UnsupportedError: rows are mixed, or cannot be shown not to be; the message names the first operator that does it.
            ArgumentError: no input has a name or an axis of `axes`.

        >>> import fastlayers as fl
        >>> fl.compile(lambda x: fl.functional.softmax(x, -1), fl.graph.Input("x", ("n", 2))).batch_axes()
        {'x': 0, 'softmax': 0}
        """
        from ._batch import of

        return of(self, axes)

    def summary(self, shapes: Mapping[str, Any] | Sequence[Any] | None = None) -> str:
        """A table of the steps: shapes, parameters, multiply-adds, bytes, which kernel runs each, and why a convolution's does. A
        second one has the matrices that are stored in fewer bits (`load`'s `weights`): bytes, and how far they are off.

        Args:
            shapes: as in `prepare`; needed where the model's own sizes are not all fixed.
        """
        from .summary import summary

        return summary(self, shapes)

    def report(self, shapes: Mapping[str, Any] | Sequence[Any] | None = None) -> Report:
        """The steps with shapes, parameters, multiply-adds, bytes and kernels, as an object: print it, ask it, or turn it into
        JSON or a page with pictures.

        Args:
            shapes: as in `prepare`; needed where the model's own sizes are not all fixed.

        >>> import fastlayers as fl
        >>> model = fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", (2,)))
        >>> [(s.step.op, s.step.kernels) for s in model.report().steps]
        [('Relu', ('unary',))]
        """
        from .summary import report

        return report(self, shapes)

    def profile(self, feeds: Mapping[str, Any] | ArrayLike, runs: int = 20) -> Report:
        """The report with times: of whole runs, and of every step.

        Args:
            feeds: as in `run`.
            runs: how often everything is run; the shortest time of each step counts.

        Raises:
            DeviceError: there is no compiled engine.
        """
        from .summary import profile

        return profile(self, feeds, runs)

    def _converted(self, feeds: Mapping[str, Any] | ArrayLike) -> list[Any]:
        """The feeds of `run` as arrays that a program takes."""
        if len(self.inputs) == 1 and not isinstance(feeds, Mapping):
            feeds = {self.inputs[0].name: feeds}
        given = _feeds.by_name(self._graph.inputs, feeds)
        return [_feeds.convert(value, array) for value, array in zip(self._graph.inputs, given, strict=True)]

    def _repr_html_(self) -> str:
        from .notebook import model_html

        return model_html(self)

    def save(self, path: str | os.PathLike[str], packed: bool = False) -> None:
        """Writes graph and weights to one file, which `load` maps into memory and any safetensors reader can list.

        The graph is written as it runs, simplified and with operations fused, so that loading it does not repeat that work;
        values that were fused away are no longer in it.

        Args:
            path: the file; it appears whole or not at all. Its name may not be that of another format, such as ``net.onnx``:
                call it ``net.safetensors``.
            packed: whether weights are also written as the compiled engine reads them, so that the first answer comes sooner,
                from a file of two to four times the size. Only what has been packed is written: where a size is open, call the
                model, or `prepare`, before. The version of fastlayers that wrote such a copy must be the one that uses it; others
                pack the weights again. Other variants than the compiled engine write none.

        Raises:
            UnsupportedError: the graph has something that the file cannot hold.
            ArgumentError: the name ends like one of another format; or nothing is packed yet, and sizes are open.
        """
        from ._written import save

        save(self, path, packed)

    def _write(self, path: str, packed: bool = False) -> None:
        """Writes to a file of any name, as programs written for others choose it."""
        from ._written import write

        write(self, path, packed)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the network as an ONNX file, for onnxruntime and others: as it was read or recorded, or as `fl.quantize` made
        it, with QuantizeLinear and DequantizeLinear around what works on bytes. Options of `load` are not in it.

        Args:
            path: the file; it appears whole or not at all. Its name ends in ``.onnx``.

        Raises:
            UnsupportedError: ONNX has no operator for something in the network, which the message names.
            LimitError: the file would have more than 2 GiB.
        """
        from ._written import export

        export(self, path)

    def close(self) -> None:
        """Lets go of the weights and of all that was made of them; calls in flight in other threads end as they would. What is
        called afterwards raises ArgumentError; `inputs`, `outputs` and `metadata` stay. Also done by ``with``:

        >>> import numpy as np, fastlayers as fl
        >>> with fl.compile(lambda x: fl.functional.relu(x), fl.graph.Input("x", (2,))) as model:
        ...     model(np.array([-1.0, 2.0]))
        array([0., 2.], dtype=float32)
        >>> model(np.array([-1.0, 2.0]))
        Traceback (most recent call last):
        fastlayers.errors.ArgumentError: the model was closed: load or compile it again
        """
        with self._lock:
            self._runner, self._growing = NoRunner(), None
            self._programs = {}
            self._graph = self._main = Closed()  # type: ignore[assignment]

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from .._habits import MODEL, advice

            if told := advice(MODEL, name):
                raise AttributeError(f"'Model' object has no attribute {name!r}{told}")
            return object.__getattribute__(self, name)  # whatever went wrong is told again

    def __repr__(self) -> str:
        def side(found: Specs) -> str:
            return ", ".join(f"{s.name} {s.dtype.name}{'' if s.shape is None else list(s.shape)}" for s in found)

        return f"Model({side(self.inputs)} -> {side(self.outputs)}; {self.variant})"

    def __reduce__(self) -> Any:
        """A model that was loaded from a mapped file, which is still the same, is pickled as a reference to it."""
        named = reference(self._origin, self._graph)
        if named is not None and self._origin is not None:
            return reload, (named, self._origin.load, self._origin.options, self._threads)
        return self._carried()

    def _carried(self) -> Any:
        device = "cuda" if self._variant.name == "cuda" else "cpu"
        return Model._restored, (self._graph, self._options, self.metadata, device, self._threads, self._about)

    @classmethod
    def _restored(cls, graph: Graph, options: Options, metadata: Any, device: str, threads: int, about: Any) -> Model:
        """A model from the state in a pickle."""
        model = cls(graph, options, metadata, device=device)
        model.num_threads, model._about = threads, about
        return model

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        make, arguments = self._carried()
        return make(*arguments)  # type: ignore[no-any-return]
