"""Makes the goldens of the torch reader with torch itself: files of every container it writes, and what must come out of them.

Run from the root of the repository: ``python -m tests.goldens.make_torch``.
Made with torch 2.13.0, numpy 2.4.6, seed 0 for the modules; the rest is counted up.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent

KEPT = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
NEW = ("uint16", "uint32", "uint64")  # of no storage class: written by _rebuild_tensor_v3
WIDENED = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


class Net(torch.nn.Module):
    """Parameters, buffers (one of them not persistent), a module without any, tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 2), torch.nn.BatchNorm1d(3), torch.nn.ReLU())
        self.head = torch.nn.Linear(3, 2)
        self.tied = torch.nn.Linear(3, 2, bias=False)
        self.tied.weight = self.head.weight
        self.register_buffer("window", torch.arange(4.0))
        self.register_buffer("scratch", torch.arange(5.0), persistent=False)
        self.scale: float = 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x).mean(-1)
        return (self.head(y) + self.tied(y)) * self.scale + torch.tensor([0.25, 0.5])


def values() -> dict[str, Any]:
    """A dict with all that a state_dict or a checkpoint may hold."""
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    half = torch.arange(8, dtype=torch.float16)
    return {
        "kept": {name: torch.arange(-3, 3).abs().to(getattr(torch, name)).reshape(2, 3) for name in KEPT},
        "widened": {"bfloat16": torch.arange(-3, 3).to(torch.bfloat16) / 7},
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "views": {
            "base": base,
            "transposed": base.permute(2, 0, 1),
            "part": base[1, 1:, ::2],
            "row": base[0, 2],
            "expanded": torch.tensor([1.0, 2.0])[:, None].expand(2, 3),
            "columns": half.reshape(2, 4).T,
        },
        "parameter": torch.nn.Parameter(torch.arange(3.0)),
        "list": [torch.tensor([1]), (torch.tensor([2]), "text"), {"x": torch.tensor([3])}],
        "ordered": OrderedDict([("b", torch.tensor([4.0])), ("a", torch.tensor([5.0]))]),
        "default": defaultdict(list, {7: torch.tensor(True)}),
        "numpy": np.arange(6, dtype=">i4").reshape(2, 3),
        "numpy fortran": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
        "nothing": {"epoch": 3, "rate": 1e-3, "name": "ünï", "none": None, "flag": True, "raw": b"\xff\0", "big": 1 << 70},
        "more nothing": [{1, 2}, np.float64(2.5), torch.float32, torch.Size([1]), torch.device("cpu"), 1j, np.array(["text"])],
    }


def flat(value: Any, name: str = "") -> dict[str, np.ndarray]:
    """The arrays that must come out of the value."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        widened = str(value.dtype).removeprefix("torch.") in WIDENED
        return {name: np.ascontiguousarray((value.float() if widened else value).numpy()).reshape(value.shape)}
    if isinstance(value, np.ndarray):
        return {name: np.ascontiguousarray(value.astype(value.dtype.newbyteorder("=")))} if value.dtype.kind in "fi" else {}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    found: dict[str, np.ndarray] = {}
    for key, item in items:
        found |= flat(item, f"{name}.{key}" if name else str(key))
    return found


def saved(value: Any, **options: Any) -> bytes:
    """What torch.save writes."""
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def scripted(module: torch.jit.ScriptModule) -> bytes:
    """What torch.jit.save writes, packed again without its tables of source lines, which name files of the machine."""
    out, packed = io.BytesIO(), io.BytesIO()
    torch.jit.save(module, out)
    with zipfile.ZipFile(out) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            if not name.endswith(".debug_pkl"):
                new.writestr(zipfile.ZipInfo(name), old.read(name), old.getinfo(name).compress_type)
    return packed.getvalue()


def no_source(*_: Any) -> None:
    """Stands for torch's function that finds the source of a module, which legacy files of whole modules carry along."""
    raise OSError


def main() -> None:
    """Writes torch_<case>.pt, and torch.json with every array that must come out: what -> name -> dtype, shape, bytes."""
    torch.manual_seed(0)
    torch.serialization.get_source_lines_and_file = no_source
    net = Net().eval()
    codes = torch.arange(0, 256, 17, dtype=torch.uint8)
    new = {name: torch.arange(6, dtype=torch.int32).to(getattr(torch, name)) for name in NEW}
    new |= {name: codes.view(getattr(torch, name)) for name in WIDENED if name.startswith("float8")}
    optimizer = torch.optim.SGD(net.parameters(), momentum=0.9)
    net(torch.ones(1, 2, 5)).sum().backward()
    optimizer.step()
    checkpoint = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}
    script = torch.jit.script(net)
    trace = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.ones(1, 2))
    frozen = torch.jit.freeze(torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(2, 2)).eval(), torch.ones(1, 2)))
    legacy = {"_use_new_zipfile_serialization": False}
    contents: dict[str, bytes] = {
        "zip": saved(values()),
        "legacy": saved(values(), **legacy),
        "protocol4": saved(checkpoint, pickle_protocol=4),
        "legacy_protocol5": saved(net.state_dict(), pickle_protocol=5, **legacy),
        "new_dtypes": saved(new),
        "module": saved(net),
        "legacy_module": saved(net, **legacy),
        "tensor": saved(torch.arange(3.0)),
        "script": scripted(script),
        "trace": scripted(trace),
        "frozen": scripted(frozen),
        "refused": saved(
            {
                "good": torch.ones(2),
                "sparse": torch.eye(2).to_sparse(),
                "quantized": torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
                "meta": torch.ones(2, device="meta"),
                "conj": torch.ones(2, dtype=torch.complex64).conj(),
                "half complex": torch.ones(2).to(torch.complex32),
            }
        ),
    }
    expected = {
        "values": flat(values()),
        "checkpoint": flat(checkpoint),
        "new": flat(new),
        "net": flat(net.state_dict()),
        "trace": flat(trace.state_dict()),
        "tensor": flat(torch.arange(3.0), "tensor"),
        "frozen": {n: np.ascontiguousarray(a) for n, a in constants(frozen).items()},
    }
    for name, content in contents.items():
        (HERE / f"torch_{name}.pt").write_bytes(content)
    lines = {
        what: {name: [a.dtype.str, a.shape, a.tobytes().hex()] for name, a in arrays.items()} for what, arrays in expected.items()
    }
    (HERE / "torch.json").write_text(json.dumps(lines, ensure_ascii=False), encoding="utf-8")


def constants(module: torch.jit.ScriptModule) -> dict[str, np.ndarray]:
    """The tensors in the code of a frozen module, which has no parameters, as its code calls them."""
    return {f"CONSTANTS.{name}": value.numpy() for name, value in module.code_with_constants[1].const_mapping.items()}


if __name__ == "__main__":
    main()
