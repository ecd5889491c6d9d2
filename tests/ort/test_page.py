"""docs/onnxruntime.md: its blocks run in order, as they stand, and its table has every option."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastlayers import ort
from fastlayers.ort._options import Option
from tests.formats import onnx_build as onnx
from tests.packages.table import GROUPS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "onnxruntime.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the source distribution has no pages")


def test_the_blocks_run_in_order(tmp_path: Path) -> None:
    weights = onnx.tensor(np.array([1, 2, 3], np.float32), "w")
    sides = [onnx.value_info("x", ("n", 3))], [onnx.value_info("y", ("n", 3))]
    (tmp_path / "model.onnx").write_bytes(onnx.model(onnx.graph([onnx.node("Add", "x w", "y")], *sides, [weights])))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    # In a process of its own: this one may have imported onnxruntime.
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = "[[2. 3. 4.]\n [2. 3. 4.]]\n"
    told = "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n"
    told += " index: 1 Got: 4 Expected: 3\n Please fix either the inputs/outputs or the model.\n"
    assert done.stdout == f"x tensor(float) ['n', 3]\ny tensor(float) ['n', 3]\n{rows}True\n{told}{rows}{rows}"


def test_the_table_has_every_option() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Options")[1]
    told = {name for row in re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    options = {name for name in vars(ort.SessionOptions) if isinstance(vars(ort.SessionOptions)[name], Option)}
    assert options <= told and all(hasattr(ort.SessionOptions, name) for name in told - {"SessionOptions"})


def test_the_page_names_every_package_that_is_run() -> None:
    text = PAGE.read_text(encoding="utf-8").replace("-", "_").lower()
    assert [case for group in GROUPS.values() for case in group.cases if not re.search(rf"\b{case}(_plus)?\b", text)] == []
    cases = {path.stem for path in (ROOT / "tests" / "packages" / "cases").glob("[a-z]*.py")}
    assert cases == {case for group in GROUPS.values() for case in group.cases}
