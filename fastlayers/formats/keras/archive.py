"""The parts of a file of Keras: its version, its configuration as plain data, and its weights as an open HDF5 file."""

from __future__ import annotations

import json
from typing import Any

from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError, UnsupportedError
from .. import hdf5
from ..budget import Budget, check_ratio, check_text
from ..hdf5.file import File
from ..source import Source

__all__ = ["Parts", "parts", "weights"]

_FREE_CONFIG, _CONFIG_RATIO = 1 << 20, 100  # of compressed ones; those of Keras' own shrink to a fiftieth
LARGEST_CONFIG = 4 << 20  # bytes of JSON; the largest models of Keras' own have 1 MB
MOST_ITEMS = 250_000  # lists, objects and commas in it, each of which becomes up to 150 bytes
_FREE = 16 << 20  # bytes that a member may have however little it was packed into
_CONFIG, _METADATA, _WEIGHTS = "config.json", "metadata.json", "model.weights.h5"


class Parts(NamedTuple):
    """A model as its file has it. `legacy`: weights by layer in HDF5 groups, as Keras 1 and 2 wrote them, not by object path."""

    config: dict[str, Any]
    version: tuple[int, int]
    weights: File
    legacy: bool
    metadata: dict[str, str]


def weights(source: Source, budget: Budget) -> File:
    """The weights in a .keras archive."""
    return hdf5.open_file(memoryview(_member(source, _WEIGHTS, budget)).toreadonly(), f"{source.where}: {_WEIGHTS}", budget)


def _member(source: Source, name: str, budget: Budget) -> bytearray:
    archive = source.archive()
    member = next((m for m in archive.members if m.name == name), None)
    if member is None:
        if name == _WEIGHTS:
            raise UnsupportedError(
                f"{source.where}: its weights are no HDF5 file but an npz of pickled dicts, which are never unpickled: save it "
                "with h5py installed"
            )
        raise FormatError(f"{source.where}: has no {name}")
    where = f"{source.where}: {name}"
    if name != _WEIGHTS and member.size > LARGEST_CONFIG:
        raise LimitError(f"{where}: has {member.size} bytes, at most {LARGEST_CONFIG} are read")
    if name != _WEIGHTS:
        check_text(member.size, member.stored, _FREE_CONFIG, _CONFIG_RATIO, where)
    check_ratio(member.size, member.stored, where, "inflate to", "pass the member alone", _FREE)
    budget.take(member.size, where)
    stream = archive.open(member, where)
    content = bytearray(member.size)
    stream.fill(memoryview(content))
    stream.finish()
    return content


def parts(source: Source, budget: Budget) -> Parts:
    """The parts of a .keras archive or of an HDF5 file with a configuration."""
    if source.starts_with(b"PK\x03\x04"):
        about = _json(_member(source, _METADATA, budget), f"{source.where}: {_METADATA}")
        config = _json(_member(source, _CONFIG, budget), f"{source.where}: {_CONFIG}")
        version = _version(about.get("keras_version"), source.where)
        return Parts(config, version, weights(source, budget), False, _metadata(about))
    file = hdf5.open_file(source.view, source.where, budget)
    found = file.attributes("")
    if not isinstance(found.get("model_config"), str):
        raise UnsupportedError(
            f"{source.where}: is an HDF5 file that holds weights alone (it has no model_config): read them with load_weights, "
            "and put them into layers with load_state_dict"
        )
    text = found["model_config"].encode()
    if len(text) > LARGEST_CONFIG:
        raise LimitError(f"{source.where}: model_config has {len(text)} bytes, at most {LARGEST_CONFIG} are read")
    group = file.attributes("model_weights") if file.find("model_weights") is not None else {}
    version = _version(found.get("keras_version", group.get("keras_version")), source.where)
    about = {"keras_version": f"{version[0]}.{version[1]}", "backend": found.get("backend", group.get("backend"))}
    return Parts(_json(text, f"{source.where}: model_config"), version, file, True, _metadata(about))


def _metadata(about: dict[str, Any]) -> dict[str, str]:
    wanted = ("keras_version", "date_saved", "backend")
    return {key: about[key] for key in wanted if isinstance(about.get(key), str)}


def _json(raw: bytes | bytearray, where: str) -> dict[str, Any]:
    try:
        text = raw.decode()
        if sum(map(text.count, "[{,")) > MOST_ITEMS:
            raise LimitError(f"{where}: has more than {MOST_ITEMS} items")
        # Keras writes Infinity and NaN as json.dumps does.
        value = json.loads(text, object_pairs_hook=_object)
    except KeyError:
        raise FormatError(f"{where}: an object of its JSON has a name twice") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: is no JSON: {type(error).__name__}") from None
    if not isinstance(value, dict):
        raise FormatError(f"{where}: is no JSON object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of a JSON object, refused where a name comes twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise KeyError("a name twice")
    return made


def _version(text: Any, where: str) -> tuple[int, int]:
    """Keras' version; Keras 1 of before 1.2 wrote none."""
    if text is None:
        return 1, 0
    pieces = str(text).split("-")[0].split(".")
    if len(pieces) < 2 or not (pieces[0].isascii() and pieces[0].isdigit() and len(pieces[0]) < 4):
        raise FormatError(f"{where}: keras_version is {str(text)[:80]!r}: expected digits and dots")
    minor = "".join(c for c in pieces[1][:4] if c.isascii() and c.isdigit())
    return int(pieces[0]), int(minor or 0)
