"""Program that `instructions` runs under valgrind: a model that is called in two forked children, more often in the second."""

from __future__ import annotations

import os
import sys

import numpy as np

import fastlayers as fl


def main(arguments: list[str]) -> None:
    """``path feeds.npz runs warm name ...``."""
    path, arrays, runs, warm, *names = arguments
    model = fl.load(path)
    with np.load(arrays) as found:
        feeds = {name: found[f"in_{i}"] for i, name in enumerate(names)}
    for _ in range(int(warm)):
        model.run(feeds)
    for calls in (1, 1 + int(runs)):
        child = os.fork()
        if not child:
            for _ in range(calls):
                model.run(feeds)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
