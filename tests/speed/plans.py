"""Plans of models of the goldens, and of the kernels' cases, as they are stored beside this file.

    python -m tests.speed.plans            writes plans.json and kernels.json
    python -m tests.speed.plans --check    says what differs

They are those of one level, whatever this machine's own is, so that every machine that has it compares the same.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl
from bench.cases import Case, all_cases, prepare
from fastlayers.kernels import dispatch
from fastlayers.report.json import dumps
from fastlayers.testing import plan_differences, plan_of

from .nets import nets

GOLDENS = Path(__file__).parent.parent / "goldens"
PLANS, KERNELS = (Path(__file__).with_name(name) for name in ("plans.json", "kernels.json"))
LEVEL = "aot/x86_v3"
SIZES = (16, 32, 64, 1)  # of open axes, tried in turn


def models() -> Iterator[tuple[str, fl.Model]]:
    """Networks by their names: files that Keras wrote, networks of layers, and the packaged one."""
    with np.load(GOLDENS / "keras_models_3.npz") as file:
        for key in file.files:
            if key.endswith("|file|.keras"):
                yield f"keras {key.partition('|')[0]}", fl.load(file[key].tobytes())
    yield from nets()
    yield "silero-vad", _silero()


def model_plan(model: fl.Model) -> dict[str, Any] | None:
    """The plan for the first of some sizes that the network takes; None if it takes none of them."""
    for size in SIZES:
        shapes = {
            s.name: tuple(d if isinstance(d, int) else 2 if i == 0 else size for i, d in enumerate(s.shape or ()))
            for s in model.inputs
        }
        try:
            report = model.report(shapes)
        except fl.Error:
            continue
        return {"shapes": {name: list(shape) for name, shape in shapes.items()}, **plan_of(report)}
    return None


def _silero() -> fl.Model:
    """The packaged network."""
    from fastlayers.cli import demo, vad

    net = demo.load_network()
    window = fl.graph.Input("window", (1, vad.CONTEXT + vad.FRAME))
    state = net.initial()
    states = [fl.graph.Input(name, np.shape(array)) for name, array in zip("hc", state, strict=True)]
    return fl.compile(lambda x, h, c: net(x, (h, c)), window, *states)


class _Zeros:
    """In the place of a generator: normal numbers are zeros, since plans do not depend on them."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        return np.zeros(() if size is None else size, np.float32)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rng, name)


def kernel_plan(case: Case) -> list[float]:
    """Of a case as a step: its operands, and the work by which it is divided among threads."""
    quick = case._replace(arguments=lambda rng: case.arguments(_Zeros()))  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some divide by norms
        step = dispatch.step(case.kernel) and prepare(quick, as_step=True).call.__closure__
    made = next(c.cell_contents for c in step or () if hasattr(c.cell_contents, "work"))
    return [made.operands, round(made.work, 1)]


def differences(which: str) -> list[str]:
    """What is not as stored: "models" or "kernels"."""
    with fl.kernels.use(LEVEL):
        if which == "models":
            stored = json.loads(PLANS.read_text(encoding="utf-8"))
            found = {name: model_plan(model) for name, model in models()}
            lines = [f"{name}: no plan is stored" for name in found if found[name] and name not in stored]
            for name, plan in stored.items():
                now = found.get(name)
                lines += [f"{name}: {line}" for line in (["gone"] if now is None else plan_differences(plan, now))]
            return lines
        kernels = json.loads(KERNELS.read_text(encoding="utf-8"))
        found = {case.id: kernel_plan(case) for case in all_cases()}
        lines = [f"{name}: gone" for name in kernels if name not in found]
        return lines + [f"{name}: {kernels.get(name)} -> {now}" for name, now in found.items() if kernels.get(name) != now]


def main(arguments: list[str]) -> int:
    """Writes, or checks."""
    if "--check" in arguments:
        found = [line for which in ("models", "kernels") for line in differences(which)]
        print("\n".join(found) or "as stored")
        return int(bool(found))
    with fl.kernels.use(LEVEL):
        plans = {name: plan for name, model in models() if (plan := model_plan(model)) is not None}
        PLANS.write_text(dumps(plans) + "\n", encoding="utf-8")
        lines = ",\n".join(f"{json.dumps(case.id)}: {json.dumps(kernel_plan(case))}" for case in all_cases())
        KERNELS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    print(f"{len(plans)} models, {lines.count(chr(10)) + 1} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
