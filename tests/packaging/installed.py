"""Run by the interpreter of an environment that holds fastlayers and numpy alone: does it work, and how large is it?"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import numpy as np
from contents import MOST_BYTES  # next to this file

import fastlayers as fl

folder = Path(fl.__file__).parent
assert sys.prefix in str(folder), f"{folder} is not the installed package"
others = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()} - {"pip", "setuptools", "wheel"}
assert others == {"fastlayers", "numpy"}, f"an install brings {sorted(others)}"
assert fl.kernels.current().startswith("aot/"), f"runs {fl.kernels.current()}"

x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(4, 3)
np.testing.assert_array_equal(fl.functional.linear(x, w, None), x @ w.T)

files = [p for p in folder.rglob("*") if p.is_file() and "data" not in p.relative_to(folder).parts]
size = sum(p.stat().st_size for p in files if p.suffix != ".pyc")
bytecode = sum(p.stat().st_size for p in files if p.suffix == ".pyc")
assert size <= MOST_BYTES, f"{size} bytes installed are more than {MOST_BYTES}"
shipped, made = f"{size / 1e6:.2f} MB", f"{bytecode / 1e6:.2f} MB"
print(f"installed: {shipped} and {made} of bytecode, without numpy and demo data, variant={fl.kernels.current()}")
