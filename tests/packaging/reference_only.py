"""Run by the interpreter of an environment whose fastlayers was installed without a compiler: it must warn once and be right."""

from __future__ import annotations

import warnings

import numpy as np

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import fastlayers as fl

    assert not caught, f"the import warns: {caught}"
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(4, 3)
    for _ in range(2):
        np.testing.assert_array_equal(fl.functional.linear(x, w, None), x @ w.T)
    assert [item.category for item in caught] == [RuntimeWarning], caught
    assert "compiled engine is missing" in str(caught[0].message), caught[0].message

assert fl.kernels.available() == ("reference",)
print(f"no_compiler: variant={fl.kernels.current()}, warned: {caught[0].message}")
