"""The scripts in examples/export: each exports a net of its framework, and what we answer is what it answers."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "examples" / "export"
NEEDS = {
    "from_torch.py": ("torch", "onnxscript"),
    "from_keras.py": ("keras", "h5py"),
    "from_tensorflow.py": ("tensorflow",),
    "from_jax.py": ("jax", "flax", "jax2onnx"),
}
FURTHEST = 2e-6  # of outputs of about 1, in float32


def test_every_script_is_here() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("script", [s for s, needs in NEEDS.items() if all(importlib.util.find_spec(n) for n in needs)])
def test_a_script(script: str, tmp_path: Path) -> None:
    backend = next((b for b in ("torch", "jax", "tensorflow") if importlib.util.find_spec(b)), "numpy")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(FOLDER / script)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "KERAS_BACKEND": backend},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    errors = [float(found) for found in re.findall(r"worst error (\S+)", done.stdout)]
    assert errors and max(errors) < FURTHEST, done.stdout


def test_the_page_quotes_the_scripts() -> None:
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    for script in NEEDS:
        section = page.split(f"(../examples/export/{script})")[1]
        block = section.split("```python\n")[1].split("```")[0]
        text = (FOLDER / script).read_text(encoding="utf-8")
        lines = [line.split("  #")[0].strip() for line in block.splitlines() if line.strip()]
        flat = re.sub(r"\s+", "", text)
        for line in lines:
            assert re.sub(r"\s+", "", line).replace(",)", ")") in flat.replace(",)", ")"), f"{script}: {line}"
