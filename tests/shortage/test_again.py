"""A module whose import ended early is imported again: what it had told others by then must not be in its way."""

from __future__ import annotations

from pathlib import Path

import fastlayers as fl
from tests.test_dispatch import python

# What needs another package, or a GPU, or begins a program.
LEFT_OUT = ("cuda", "jit", "_freeze", "integrations", "__main__", "plugin", "onnx_backend", "serve")


def test_every_module_can_be_imported_twice() -> None:
    root = Path(fl.__file__).parents[1]
    paths = [path.relative_to(root).with_suffix("") for path in (root / "fastlayers").rglob("*.py")]
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths if not set(path.parts) & set(LEFT_OUT)]
    code = f"""
    import importlib, sys
    for name in {sorted(names)!r}:
        found = importlib.import_module(name)
        del sys.modules[name]
        try:
            importlib.import_module(name)
        except Exception as error:
            print(name, repr(error))
        sys.modules[name] = found
    """
    assert len(names) > 250 and python(code) == ""
