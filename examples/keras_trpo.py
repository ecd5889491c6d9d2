"""The network of TRPO (2015) for a robot: from what it observes to the mean of its actions, by 30 hidden units.

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_trpo.py net.npz``.
"""

import sys

import numpy as np

import fastlayers as fl


def network() -> fl.Layer:
    return fl.Sequential(fl.Linear(20, 30, activation="tanh"), fl.Linear(30, 6))


INPUTS = [fl.graph.Input("observation", ("n", 20))]


def main(path: str) -> None:
    net = network()
    with np.load(path) as weights:
        net.load_keras(list(weights.values()))
    act = fl.compile(net, *INPUTS)  # recorded once
    print(act(np.random.rand(1, 20)))


if __name__ == "__main__":
    main(sys.argv[1])
