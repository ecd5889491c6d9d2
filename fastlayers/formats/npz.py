"""Reading npz: a zip archive of npy members, bounded in number, size and ratio. What is no tensor is checked and left out."""

from __future__ import annotations

from .._tuples import NamedTuple
from ..errors import FormatError, UnsupportedError
from . import npy
from ._arrays import Array, decode
from ._zip import Member, Stream
from .budget import Budget, check_ratio
from .source import Source, quote

NAME = "npz"
LOOKS = "a zip archive ('PK') with npy members"


class _Plan(NamedTuple):
    """A member that holds a tensor, and where the tensor begins in it."""

    name: str
    member: Member
    header: npy.Header
    where: str


def sniff(source: Source) -> bool:
    """A zip archive with an npy member. Raises FormatError for a zip archive that is broken: nothing else begins so."""
    if not source.starts_with(b"PK\x03\x04"):
        return False
    return any(member.name.endswith(".npy") for member in source.archive().members)


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every numeric array, by its member's name without ".npy". Members that hold strings, dates or no array are left out."""
    archive = source.archive()
    _check_sizes(source, budget)
    plans: dict[str, _Plan] = {}
    refused: list[str] = []
    for member in archive.members:
        where = f"{source.where}: member {quote(member.name)}"
        try:
            header = _header(archive.open(member, where), member, where)
        except UnsupportedError as error:
            refused.append(str(error))
            continue
        if header is None:
            continue
        name = member.name.removesuffix(".npy")
        if name in plans:
            raise FormatError(f"{where}: another member has the name {quote(name)} too, but for the suffix")
        plans[name] = _Plan(name, member, header, where)
    if refused:
        raise UnsupportedError("; ".join(refused[:5]) + (f"; ... ({len(refused)} members in all)" if len(refused) > 5 else ""))
    return {p.name: _read(archive.open(p.member, p.where), p, budget) for p in plans.values()}


def _check_sizes(source: Source, budget: Budget) -> None:
    """Compares what the members claim to inflate to with `max_bytes` and with the size of the file that claims it."""
    claimed = sum(member.size for member in source.archive().members)
    budget.check(claimed, source.where)
    check_ratio(claimed, len(source), source.where, "claim to inflate to", "save the arrays uncompressed (numpy.savez)")


def _header(stream: Stream, member: Member, where: str) -> npy.Header | None:
    """The checked header of a tensor. A member that holds none is read to its end, so that damage is found there too."""
    if not member.name.endswith(".npy") and stream.peek(len(npy.MAGIC)) != npy.MAGIC:
        stream.drain()
        return None
    header = npy.read_header(stream.read, where)
    npy.check_length(header, stream.left, where)
    if header.kind is None:
        stream.drain()
        return None
    return header


def _read(stream: Stream, plan: _Plan, budget: Budget) -> Array:
    header = plan.header
    assert header.kind is not None
    stream.read(header.length)
    raw = budget.empty((header.nbytes,), "u1", plan.where)
    if header.nbytes:
        stream.fill(raw.data)
    stream.finish()
    view = raw.data.toreadonly() if header.nbytes else memoryview(b"")
    array = decode(view, header.kind, header.shape, budget, plan.where, fortran=header.fortran)
    if header.nbytes and array.flags.owndata:
        budget.release(header.nbytes)
    return array
