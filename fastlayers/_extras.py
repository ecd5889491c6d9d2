"""The optional parts of an installation: which packages each needs, and the command that brings them.

The command names the packages themselves, so that it works wherever fastlayers came from: an index, a clone, or a wheel.
"""

from __future__ import annotations

__all__ = ["PACKAGES", "install"]

# As in pyproject.toml, which a test compares.
PACKAGES = {
    "jit": ("numba>=0.60",),
    "cuda": ("numba>=0.61", "numba-cuda[cu12]>=0.30"),
    "cli": ("rich>=13",),
    "onnx": ("onnx>=1.19",),
    "compare": ("onnxruntime>=1.20",),
    "ray": ("ray[data]>=2.40",),
    "dask": ("dask[array,distributed]>=2025.1",),
    "spark": ("pyspark>=3.5", "pyarrow>=15", "pandas>=2.2,<3"),
    "joblib": ("joblib>=1.4",),
    "serve": ("httptools>=0.6", "prometheus-client>=0.20", "uvicorn>=0.34"),
    "text": ("jinja2>=3.1", "tokenizers>=0.20"),
}


def install(extra: str) -> str:
    """The command that brings what a part needs."""
    return " ".join(["pip install", *(f'"{package}"' for package in PACKAGES[extra])])
