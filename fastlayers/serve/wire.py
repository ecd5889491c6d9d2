"""Inference requests and answers: JSON, or JSON followed by tensors as bytes (the binary tensor data extension)."""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._locks import Lock
from ..model.specs import TensorSpec
from .datatypes import datatype, dump, from_bytes, from_json, shape_of, to_bytes
from .failures import Refused

__all__ = ["JSON", "Asked", "Parameters", "Wanted", "answer", "document", "feeds_of", "outputs_of", "read", "said", "written"]

JSON = ((b"content-type", b"application/json"),)
# Elements that an answer in JSON may have: to write them keeps all others waiting, as to read them does.
BYTES_AN_ELEMENT = 8
PIECE = 4096


class Parameters(NamedTuple):
    """Parameters of a request: its stream, and its time limit."""

    sequence: int | str | None = None
    start: bool = False
    end: bool = False
    timeout: float | None = None


class Asked(NamedTuple):
    """A request's JSON, and the bytes after it."""

    id: str | None
    parameters: Parameters
    binary: bool  # whether outputs are answered as bytes, unless they say otherwise
    document: dict[str, Any]
    rest: memoryview


Wanted = list[tuple[str, bool]]  # outputs, and whether as bytes


class _Held:
    """Python's garbage collector walks over all that was parsed, again and again: it waits while any document is parsed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._was = False

    def __enter__(self) -> None:
        with self._lock:
            if self._count == 0:
                self._was = gc.isenabled()
                gc.disable()
            self._count += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._was:
                gc.enable()


_held = _Held()  # one for all: parsing of several documents begins and ends in any order


def _float(text: str) -> float:
    return float(text)


def _int(text: str) -> int:
    return int(text)


# The parser is one call in C, during which no other thread runs; these are Python, between whose calls others may.
_GIVING_WAY: dict[str, Any] = {"parse_float": _float, "parse_int": _int}
_LISTS = 1 << 18  # for lists it calls nothing: so many take it some 30 ms
_LONG = 1 << 16  # bytes of JSON from which on they are worth their time, half of the parser's


def document(body: bytes | memoryview, most: int) -> dict[str, Any]:
    """A JSON object of at most so many bytes."""
    if len(body) > most:
        raise Refused(
            413, f"JSON of {len(body)} bytes: expected at most {most}; larger tensors are sent with the binary tensor extension",
            "too large",
        )  # fmt: skip
    text = bytes(body)
    if (lists := text.count(b"[") + text.count(b"{")) > _LISTS:
        raise Refused(
            413, f"JSON of {lists} lists: expected at most {_LISTS}; flat data, or the binary tensor extension, has less",
            "too large",
        )  # fmt: skip
    try:
        with _held:
            found = json.loads(text, **(_GIVING_WAY if len(body) > _LONG else {}))
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise Refused(400, f"the body is no JSON: {error!s:.200}") from None
    if not isinstance(found, dict):
        raise Refused(400, f"the body is a JSON {type(found).__name__}: expected an object")
    return found


def read(body: bytes, header: str | None, most: int) -> Asked:
    """A request, but for its tensors.

    Args:
        body: all of it.
        header: ``Inference-Header-Content-Length``, if it came: how long the JSON is.
        most: bytes of JSON that are parsed.
    """
    view = memoryview(body)
    length = len(view)
    if header is not None:
        length = int(header) if header.isascii() and header.isdigit() and len(header) < 12 else -1
        if not 0 <= length <= len(view):
            raise Refused(400, f"Inference-Header-Content-Length is {header!r:.50}: expected at most {len(view)} bytes, the body")
    asked = document(view[:length], most)
    ident = asked.get("id")
    if ident is not None and not isinstance(ident, str):
        raise Refused(400, f"id is {ident!r:.50}: expected a string")
    given = _parameters("the request", asked)
    return Asked(ident, _understood(given), _flag(given, "binary_data_output", False), asked, view[length:])


def _parameters(what: str, of: Mapping[str, Any]) -> Mapping[str, Any]:
    found = of.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Refused(400, f"{what}: parameters is {found!r:.50}: expected an object")
    return found


def _flag(parameters: Mapping[str, Any], name: str, otherwise: bool) -> bool:
    found = parameters.get(name, otherwise)
    if not isinstance(found, bool):
        raise Refused(400, f"{name} is {found!r:.50}: expected true or false")
    return found


def _understood(given: Mapping[str, Any]) -> Parameters:
    sequence = given.get("sequence_id")
    if not (sequence is None or isinstance(sequence, str) or (type(sequence) is int and 0 <= sequence < 2**64)):
        raise Refused(400, f"sequence_id is {sequence!r:.50}: expected an unsigned integer or a string")
    if isinstance(sequence, str) and len(sequence) > 128:
        raise Refused(400, f"sequence_id has {len(sequence)} characters: expected at most 128")
    timeout = given.get("timeout")
    if timeout is not None and (type(timeout) is not int or timeout < 0):
        raise Refused(400, f"timeout is {timeout!r:.50}: expected a number of microseconds")
    return Parameters(
        sequence or None,  # 0 and "" say that there is none
        _flag(given, "sequence_start", False),
        _flag(given, "sequence_end", False),
        timeout / 1e6 if timeout else None,
    )


def feeds_of(asked: Asked, inputs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The arrays of a request, one for each of these inputs, in their order."""
    given, rest = asked.document.get("inputs"), asked.rest
    specs = {spec.name: spec for spec in inputs}
    if not isinstance(given, list):
        raise Refused(400, f"inputs is {given!r:.50}: expected a list of tensors")
    feeds: dict[str, np.ndarray] = {}
    at = 0
    for item in given:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or name not in specs or name in feeds:
            raise Refused(400, f"inputs has {name!r:.100}: expected each of {list(specs)} once")
        what, expected = f"input {name!r}", datatype(specs[name].dtype) or ""
        if item.get("datatype") != expected:
            raise Refused(400, f"{what}: datatype is {item.get('datatype')!r:.50}: expected {expected!r}")
        shape, count = shape_of(what, item.get("shape"))
        parameters = _parameters(what, item)
        size = parameters.get("binary_data_size")
        if size is None:
            if "data" not in item:
                raise Refused(400, f"{what}: has no data and no binary_data_size")
            feeds[name] = from_json(what, expected, shape, count, item["data"])
            continue
        if type(size) is not int or not 0 <= size <= len(rest) - at or "data" in item:
            raise Refused(
                400, f"{what}: binary_data_size is {size!r:.50}: expected at most the {len(rest) - at} bytes left, and no data"
            )
        feeds[name] = from_bytes(what, expected, shape, count, rest[at : at + size])
        at += size
    if at != len(rest):
        raise Refused(400, f"{len(rest) - at} bytes are left after the tensors: expected none")
    if missing := [name for name in specs if name not in feeds]:
        raise Refused(400, f"inputs lacks {missing}: expected each of {list(specs)} once")
    return {name: feeds[name] for name in specs}


def outputs_of(asked: Asked, names: Sequence[str]) -> Wanted:
    """Outputs to answer with: some of these, or all of them."""
    wanted = asked.document.get("outputs")
    if not wanted:
        return [(name, asked.binary) for name in names]
    if not isinstance(wanted, list):
        raise Refused(400, f"outputs is {wanted!r:.50}: expected a list")
    found: dict[str, bool] = {}
    for item in wanted:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or name not in names or name in found:
            raise Refused(400, f"outputs has {name!r:.100}: expected some of {list(names)}, each once")
        parameters = _parameters(f"output {name!r}", item)
        if unknown := [key for key in parameters if key != "binary_data"]:
            raise Refused(400, f"output {name!r}: parameters has {unknown[0]!r:.50}: only binary_data is supported")
        found[name] = _flag(parameters, "binary_data", asked.binary)
    return list(found.items())


def answer(
    model: str, version: str, asked: Asked, wanted: Wanted, results: Mapping[str, np.ndarray], most: int
) -> tuple[tuple[tuple[bytes, bytes], ...], bytes]:
    """The headers and the body of an answer.

    Args:
        most: bytes of JSON that a request may have, which bounds the elements that are written as JSON.
    """
    outputs: list[str] = []
    parts: list[bytes] = []
    written = 0
    for name, binary in wanted:
        array = results[name]
        output: dict[str, Any] = {"name": name, "datatype": datatype(array.dtype), "shape": list(array.shape)}
        if binary:
            parts.append(to_bytes(array))
            output["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            written += array.size * BYTES_AN_ELEMENT
            if written > most:
                raise Refused(400, f"output {name!r} has {array.size} elements, too many for JSON: ask for it with binary_data")
        text = _json(output)
        outputs.append(text if binary else f'{text[:-1]},"data":[{",".join(_elements(array))}]}}')
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if asked.id is not None:
        head["id"] = asked.id
    if asked.parameters.sequence is not None:
        parameters = asked.parameters
        head["parameters"] = {
            "sequence_id": parameters.sequence, "sequence_start": parameters.start, "sequence_end": parameters.end,
        }  # fmt: skip
    body = f'{_json(head)[:-1]},"outputs":[{",".join(outputs)}]}}'.encode()
    if not parts:
        return JSON, body
    kind = (b"content-type", b"application/octet-stream")
    return (kind, (b"inference-header-content-length", b"%d" % len(body))), b"".join([body, *parts])


def said(
    status: int, value: Any, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> tuple[int, tuple[tuple[bytes, bytes], ...], bytes]:
    """An answer in JSON."""
    return status, (*JSON, *headers), written(value).encode()


def written(value: Any) -> str:
    """JSON; floats that are no numbers, or infinite, for which it has no word, are null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return _json(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _elements(array: np.ndarray) -> Iterator[str]:
    """The elements of a tensor in JSON, piece by piece: other threads wait while one is written."""
    flat = array.reshape(-1)
    for first in range(0, flat.size, PIECE):
        yield _json(dump(flat[first : first + PIECE]))[1:-1]
