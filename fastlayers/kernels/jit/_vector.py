"""Vectors of the host's width, written as formulas: what `aot/csrc/vec.h` is to the C kernels, emitted as LLVM code.

An `Emit` wraps the place where code is being emitted; a `V` is a value there (a vector or a scalar) with Python's operators, so
that a function of `_math.py` reads like its formula. Nothing here knows of Numba but for the builder that it is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import llvmlite.binding as llvm
from llvmlite import ir

__all__ = ["FUSED", "REGISTERS", "WIDTH", "Double", "Emit", "Float", "Integer", "V", "Var", "has"]

_FEATURES = llvm.get_host_cpu_features()


def has(*names: str) -> bool:
    """Has the host one of these features?"""
    return any(_FEATURES.get(name) for name in names)


# Floats of a vector register, and whether there is a fused multiply-add.
WIDTH = 16 if has("avx512f") else 8 if has("avx2") and has("fma") else 4
FUSED = has("fma", "neon", "fp-armv8")
REGISTERS = 32 if has("avx512f", "neon", "fp-armv8") else 16

F32, F64, I1, I8, I32, I64 = ir.FloatType(), ir.DoubleType(), ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _element(kind: Any) -> Any:
    return kind.element if isinstance(kind, ir.VectorType) else kind


def _is_float(kind: Any) -> bool:
    return isinstance(_element(kind), ir.FloatType | ir.DoubleType)


def _suffix(kind: Any) -> str:
    """Suffix of a type in the names of LLVM's intrinsics."""
    if isinstance(kind, ir.PointerType):  # opaque since LLVM 15
        return "p0" if llvm.llvm_version_info[0] >= 15 else f"p0{_suffix(kind.pointee)}"
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_suffix(kind.element)}"
    return {F32: "f32", F64: "f64"}.get(kind) or f"i{kind.width}"


class V:
    """A value of LLVM's with Python's operators. Scalars next to it become constants of its type."""

    __slots__ = ("e", "v")

    def __init__(self, e: Emit, v: Any) -> None:
        self.e, self.v = e, v

    @property
    def kind(self) -> Any:
        return self.v.type

    def _with(self, other: Any) -> Any:
        return other.v if isinstance(other, V) else self.e.constant(self.kind, other).v

    def _operation(self, name: str, other: Any, swapped: bool = False) -> V:
        a, b = self.v, self._with(other)
        if swapped:
            a, b = b, a
        return V(self.e, getattr(self.e.builder, ("f" if _is_float(self.kind) else "") + name)(a, b))

    def __add__(self, other: Any) -> V:
        return self._operation("add", other)

    def __radd__(self, other: Any) -> V:
        return self._operation("add", other, True)

    def __sub__(self, other: Any) -> V:
        return self._operation("sub", other)

    def __rsub__(self, other: Any) -> V:
        return self._operation("sub", other, True)

    def __mul__(self, other: Any) -> V:
        return self._operation("mul", other)

    def __rmul__(self, other: Any) -> V:
        return self._operation("mul", other, True)

    def __truediv__(self, other: Any) -> V:
        return self._operation("div", other)

    def __rtruediv__(self, other: Any) -> V:
        return self._operation("div", other, True)

    def __neg__(self) -> V:
        return V(self.e, self.e.builder.fneg(self.v)) if _is_float(self.kind) else 0 - self

    def __lshift__(self, bits: int) -> V:
        return V(self.e, self.e.builder.shl(self.v, self._with(bits)))

    def __rshift__(self, bits: int) -> V:
        return V(self.e, self.e.builder.ashr(self.v, self._with(bits)))

    def logical_shift(self, bits: int) -> V:
        """A shift to the right of an unsigned number."""
        return V(self.e, self.e.builder.lshr(self.v, self._with(bits)))

    def __and__(self, other: Any) -> V:
        return V(self.e, self.e.builder.and_(self.v, self._with(other)))

    def __or__(self, other: Any) -> V:
        return V(self.e, self.e.builder.or_(self.v, self._with(other)))

    def __xor__(self, other: Any) -> V:
        return V(self.e, self.e.builder.xor(self.v, self._with(other)))

    def __invert__(self) -> V:
        return V(self.e, self.e.builder.not_(self.v))

    def _compare(self, sign: str, other: Any) -> V:
        b = self._with(other)
        if not _is_float(self.kind):
            return V(self.e, self.e.builder.icmp_signed(sign, self.v, b))
        # A comparison with NaN is false, but for "not equal".
        compare = self.e.builder.fcmp_unordered if sign == "!=" else self.e.builder.fcmp_ordered
        return V(self.e, compare(sign, self.v, b))

    def __lt__(self, other: Any) -> V:
        return self._compare("<", other)

    def __le__(self, other: Any) -> V:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> V:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> V:
        return self._compare(">=", other)

    def equals(self, other: Any) -> V:
        """Lanes where both are equal; NaN is equal to nothing."""
        return self._compare("==", other)

    def differs(self, other: Any) -> V:
        """Lanes where the two are not equal."""
        return self._compare("!=", other)


# How the functions that `_njit.emitted` takes say that a value or the result is a float or a double; integers need not be told
# but as a result.
Float: TypeAlias = V
Double: TypeAlias = V
Integer: TypeAlias = V


class Var:
    """A variable: its value may change in loops."""

    __slots__ = ("e", "place")

    def __init__(self, e: Emit, value: V) -> None:
        self.e = e
        with e.builder.goto_entry_block():
            self.place = e.builder.alloca(value.kind)
        self.set(value)

    def get(self) -> V:
        return V(self.e, self.e.builder.load(self.place))

    def set(self, value: V) -> None:
        self.e.builder.store(value.v, self.place)


class Emit:
    """Emitter of code at a position, with its operations as methods."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    # ---- constants and conversions

    def vector(self, element: Any, width: int = WIDTH) -> Any:
        return ir.VectorType(element, width)

    def constant(self, kind: Any, value: float) -> V:
        """A number as a scalar, or in every lane."""
        value = float(value) if _is_float(kind) else int(value)
        if isinstance(_element(kind), ir.IntType):
            bits = _element(kind).width
            value = int(value) & ((1 << bits) - 1)
            value = int(value) - (1 << bits) if bits > 1 and int(value) >> (bits - 1) else int(value)
        if isinstance(kind, ir.VectorType):
            return V(self, ir.Constant(kind, [value] * kind.count))
        return V(self, ir.Constant(kind, value))

    def f(self, value: float) -> V:
        """A float in every lane."""
        return self.constant(self.vector(F32), value)

    def i64(self, value: int) -> V:
        return self.constant(I64, value)

    def splat(self, scalar: V, width: int = WIDTH) -> V:
        """A scalar in every lane."""
        kind = self.vector(scalar.kind, width)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), scalar.v, ir.Constant(I32, 0))
        return self.lanes(V(self, one), [0] * width)

    def lanes(self, a: V, order: Sequence[int], b: V | None = None) -> V:
        """Lanes of a, or of a and then b, in an order."""
        other = ir.Constant(a.kind, ir.Undefined) if b is None else b.v
        return V(self, self.builder.shuffle_vector(a.v, other, ir.Constant(ir.VectorType(I32, len(order)), list(order))))

    def lane(self, a: V, index: int) -> V:
        return V(self, self.builder.extract_element(a.v, ir.Constant(I32, index)))

    def bits(self, a: V) -> V:
        """The bits of floats as integers."""
        return self._cast(a, {F32: I32, F64: I64}[_element(a.kind)])

    def floats(self, a: V) -> V:
        """Floats of their bits."""
        return self._cast(a, F32 if _element(a.kind).width == 32 else F64)

    def _cast(self, a: V, element: Any) -> V:
        kind = ir.VectorType(element, a.kind.count) if isinstance(a.kind, ir.VectorType) else element
        return V(self, self.builder.bitcast(a.v, kind))

    def convert(self, a: V, element: Any, how: str) -> V:
        """One of LLVM's conversions: fpext, fptrunc, sitofp, fptosi, zext, sext, trunc."""
        kind = ir.VectorType(element, a.kind.count) if isinstance(a.kind, ir.VectorType) else element
        return V(self, getattr(self.builder, how)(a.v, kind))

    # ---- arithmetic

    def select(self, mask: V, a: Any, b: Any) -> V:
        kind = a.kind if isinstance(a, V) else b.kind
        a, b = (x if isinstance(x, V) else self.constant(kind, x) for x in (a, b))
        return V(self, self.builder.select(mask.v, a.v, b.v))

    def most(self, a: Any, b: V) -> V:
        """The larger one; b where either is NaN."""
        a = a if isinstance(a, V) else self.constant(b.kind, a)
        return self.select(a > b, a, b)

    def least(self, a: Any, b: V) -> V:
        """The smaller one; b where either is NaN."""
        a = a if isinstance(a, V) else self.constant(b.kind, a)
        return self.select(a < b, a, b)

    def most_nan(self, a: V, b: V) -> V:
        """The larger one; NaN where either is."""
        return self.select(a.differs(a), a, self.most(a, b))

    def least_nan(self, a: V, b: V) -> V:
        """The smaller one; NaN where either is."""
        return self.select(a.differs(a), a, self.least(a, b))

    def _call(self, name: str, result: Any, *arguments: Any) -> V:
        module, kinds = self.builder.module, [a.type for a in arguments]
        function = module.globals.get(name) or ir.Function(module, ir.FunctionType(result, kinds), name)
        return V(self, self.builder.call(function, list(arguments)))

    def call(self, name: str, result: Any, *arguments: V) -> V:
        """One of LLVM's intrinsics, or another function of this name."""
        return self._call(name, result, *(a.v for a in arguments))

    def suffix(self, kind: Any) -> str:
        return _suffix(kind)

    def _intrinsic(self, name: str, *arguments: V) -> V:
        kind = arguments[0].kind
        return self._call(f"llvm.{name}.{_suffix(kind)}", kind, *(a.v for a in arguments))

    def fma(self, a: Any, b: Any, c: Any) -> V:
        """a b + c, rounded once where the host can."""
        kind = next(x.kind for x in (a, b, c) if isinstance(x, V))
        a, b, c = (x if isinstance(x, V) else self.constant(kind, x) for x in (a, b, c))
        if not FUSED:
            plain: V = a * b + c
            return plain
        return self._intrinsic("fma", a, b, c)

    def sum(self, a: V, b: V) -> V:
        """a + b, which is not made one with a product: its own flag, which means nothing here, keeps Numba's away."""
        return V(self, self.builder.fadd(a.v, b.v, flags=("arcp",)))

    def root(self, a: V) -> V:
        return self._intrinsic("sqrt", a)

    def nearest(self, a: V) -> V:
        """The nearest whole number, of two the even one."""
        return self._intrinsic("rint", a)

    def absolute(self, a: V) -> V:
        return self._intrinsic("fabs", a)

    def signed(self, size: V, sign: V) -> V:
        """|size| with the sign of the other."""
        return self._intrinsic("copysign", size, sign)

    def fold(self, a: V, operation: Any) -> V:
        """All lanes folded by halves; every lane of the result is the same."""
        count = half = a.kind.count
        while half > 1:
            half //= 2
            a = operation(a, self.lanes(a, [i ^ half for i in range(count)]))
        return a

    # ---- memory; addresses are integers

    def at(self, address: V, index: Any, size: int = 4) -> V:
        return address + (index * size if isinstance(index, V) else self.i64(index * size))

    def mask(self, count: V, width: int = WIDTH) -> V:
        """Lanes 0 .. count - 1."""
        number = V(self, ir.Constant(ir.VectorType(I32, width), list(range(width))))
        return number < self.splat(self.convert(count, I32, "trunc"), width)

    def load(self, address: V, kind: Any = None, mask: V | None = None, other: V | None = None) -> V:
        """A vector of floats (or a value of another kind); lanes outside the mask are not touched, and get those of `other`."""
        kind = kind or self.vector(F32)
        pointer = self.builder.inttoptr(address.v, kind.as_pointer())
        size = max(1, _element(kind).width // 8) if isinstance(_element(kind), ir.IntType) else 8 if _element(kind) == F64 else 4
        if mask is None:
            value = self.builder.load(pointer)
            value.align = size
            return V(self, value)
        other = self.constant(kind, 0) if other is None else other
        name = f"llvm.masked.load.{_suffix(kind)}.{_suffix(pointer.type)}"
        return self._call(name, kind, pointer, ir.Constant(I32, size), mask.v, other.v)

    def store(self, address: V, value: V, mask: V | None = None) -> None:
        kind = value.kind
        pointer = self.builder.inttoptr(address.v, kind.as_pointer())
        size = max(1, _element(kind).width // 8) if isinstance(_element(kind), ir.IntType) else 8 if _element(kind) == F64 else 4
        if mask is None:
            self.builder.store(value.v, pointer).align = size
            return
        name = f"llvm.masked.store.{_suffix(kind)}.{_suffix(pointer.type)}"
        self._call(name, ir.VoidType(), value.v, pointer, ir.Constant(I32, size), mask.v)

    def prefetch(self, address: V, write: bool = True) -> None:
        """Draws a line of memory toward the second-level cache; never faults."""
        pointer = self.builder.inttoptr(address.v, I8.as_pointer())
        options = [ir.Constant(I32, number) for number in (int(write), 2, 1)]
        self._call(f"llvm.prefetch.{_suffix(pointer.type)}", ir.VoidType(), pointer, *options)

    def strided(self, address: V, step: int | V) -> V:
        """Every step-th float, of memory that goes on for `step` vectors; a step that is no number is one of 1, 2 or more."""
        if isinstance(step, int):
            if step == 1:
                return self.load(address)
            low, high = self.load(address), self.load(self.at(address, WIDTH))
            return self.lanes(low, range(0, 2 * WIDTH, 2), high)
        value = ir.Constant(self.vector(F32), ir.Undefined)
        for i in range(WIDTH):
            one = self.load(self.at(address, step * i), F32)
            value = self.builder.insert_element(value, one.v, ir.Constant(I32, i))
        return V(self, value)

    def broadcast(self, address: V) -> V:
        """One float of memory in every lane."""
        return self.splat(self.load(address, F32))

    # ---- control

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int = 1) -> Iterator[V]:
        """For an index from start, while below stop."""
        builder = self.builder
        start, stop = (x if isinstance(x, V) else self.i64(x) for x in (start, stop))
        before = builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(I64)
        index.add_incoming(start.v, before)
        builder.cbranch(builder.icmp_signed("<", index, stop.v), body, end)
        builder.position_at_end(body)
        yield V(self, index)
        index.add_incoming(builder.add(index, ir.Constant(I64, step)), builder.block)
        builder.branch(head)
        builder.position_at_end(end)

    @contextmanager
    def when(self, condition: V) -> Iterator[None]:
        with self.builder.if_then(condition.v):
            yield

    def switch(self, code: V, cases: dict[int, Callable[[], None]]) -> None:
        """Emits every case; the one with the number `code` runs."""
        end = self.builder.append_basic_block("done")
        switch = self.builder.switch(code.v, end)
        for number, emit in cases.items():
            block = self.builder.append_basic_block(f"case{number}")
            switch.add_case(ir.Constant(code.kind, number), block)
            self.builder.position_at_end(block)
            emit()
            self.builder.branch(end)
        self.builder.position_at_end(end)

    def var(self, value: V) -> Var:
        return Var(self, value)

    def any(self, mask: V) -> V:
        """Is there a lane of the mask?"""
        kind = ir.IntType(mask.kind.count)
        return V(self, self.builder.bitcast(mask.v, kind)).differs(0)

    def vectors(self, count: V, body: Any, width: int = WIDTH) -> None:
        """Calls body(index, mask) to emit whole vectors (mask None) of `count` values, and the partial one after them."""
        whole = count & -width
        with self.loop(0, whole, width) as index:
            body(index, None)
        with self.when(whole < count):
            body(whole, self.mask(count - whole, width))

    def smaller(self, a: V, b: V) -> V:
        """The smaller one of two integers."""
        return self.select(a < b, a, b)

    def folded(
        self, count: V, start: float, take: Callable[[V, V, V | None], V], merge: Callable[[V, V], V], chain: int = 16
    ) -> V:
        """Folds `count` values into every lane: take(so far, index, mask) of whole vectors and of the partial one.

        A chain of `chain` vectors is folded at a time, so that long sums stay accurate; lanes outside of a mask do not change.
        """
        total = self.var(self.f(start))
        with self.loop(0, count, chain * WIDTH) as first:
            part = self.var(self.f(start))

            def body(i: V, mask: V | None) -> None:
                before = part.get()
                after = take(before, first + i, mask)
                part.set(after if mask is None else self.select(mask, after, before))

            self.vectors(self.smaller(count - first, self.i64(chain * WIDTH)), body)
            total.set(merge(total.get(), part.get()))
        return self.fold(total.get(), merge)

    def folded_down(
        self,
        count: V,
        start: float,
        take: Callable[[list[V], V], list[V]],
        merge: Callable[[V, V], V],
        vectors: int = 1,
        chain: int = 16,
    ) -> list[V]:
        """Folds columns, `vectors` adjacent vectors of them, each in the order in which `folded` folds a row of `count`.

        take(so far, row) takes in one row. Row i belongs to what would be lane i % WIDTH; lanes are retained in memory.
        """
        with self.builder.goto_entry_block():
            memory = self.builder.alloca(self.vector(F32), WIDTH * vectors)
        lanes = V(self, self.builder.ptrtoint(memory, I64))
        there = self.smaller(count, self.i64(WIDTH))  # lanes that n does not reach would add nothing
        with self.loop(0, there) as lane:
            totals = [self.var(self.f(start)) for _ in range(vectors)]
            with self.loop(0, count, chain * WIDTH) as first:
                parts = [self.var(self.f(start)) for _ in range(vectors)]
                with self.loop(first + lane, self.smaller(count, first + chain * WIDTH), WIDTH) as row:
                    for part, value in zip(parts, take([part.get() for part in parts], row), strict=True):
                        part.set(value)
                for total, part in zip(totals, parts, strict=True):
                    total.set(merge(total.get(), part.get()))
            for v, total in enumerate(totals):
                self.store(self.at(lanes, (lane * vectors + v) * WIDTH), total.get())
        half = WIDTH
        while half > 1:
            half //= 2
            with self.loop(0, (there - half) * vectors * WIDTH, WIDTH) as i:
                low = self.at(lanes, i)
                self.store(low, merge(self.load(low), self.load(self.at(low, half * vectors * WIDTH))))
            there = self.smaller(there, self.i64(half))
        return [self.load(self.at(lanes, v * WIDTH)) for v in range(vectors)]
