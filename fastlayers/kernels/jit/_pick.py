"""Values picked out of memory, or out of two vectors, by vectors of indices."""

from __future__ import annotations

from llvmlite import ir

from ._vector import F32, I32, I64, WIDTH, Emit, V, has

__all__ = ["PICKS", "gathered", "pick"]

# Whether the host can pick lanes of two vectors by values that are not known beforehand.
PICKS = WIDTH == 16 or (WIDTH == 8 and has("avx2"))


def pick(e: Emit, a: V, b: V, lane: V) -> V:
    """Lanes of a and then b, by their values (32 bits)."""
    if WIDTH == 16:
        return e.call("llvm.x86.avx512.vpermi2var.ps.512", a.kind, a, lane, b)
    one, other = (e.call("llvm.x86.avx2.permps", a.kind, x, lane) for x in (a, b))
    return e.select(lane > WIDTH - 1, other, one)


def gathered(e: Emit, address: V, index: V, mask: V | None = None) -> V:
    """The floats at address + 4 index, for vectors of 32-bit indices; 0 outside of the mask, where nothing is read."""
    kind, pointers = e.vector(F32), ir.VectorType(F32.as_pointer(), WIDTH)
    places = e.splat(address) + (e.convert(index, I64, "sext") << 2)
    value = V(e, e.builder.inttoptr(places.v, pointers))
    mask = e.constant(e.vector(ir.IntType(1)), 1) if mask is None else mask
    return e.call(f"llvm.masked.gather.{e.suffix(kind)}.{e.suffix(pointers)}", kind, value, e.constant(I32, 4), mask, e.f(0.0))
