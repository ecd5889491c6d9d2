"""A dense layer on images, as in Keras: Dense(8, activation="relu"), Flatten, Dense(2).

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_dense.py net.npz``.
"""

import sys

import numpy as np

import fastlayers as fl


def network() -> fl.Layer:
    return fl.Sequential(fl.Linear(3, 8, activation="relu"), fl.Flatten(), fl.Linear(32 * 32 * 8, 2))


INPUTS = [fl.graph.Input("images", ("n", 32, 32, 3))]


def main(path: str) -> None:
    net = network()
    with np.load(path) as weights:
        net.load_keras(list(weights.values()))
    images = np.random.rand(4, 32, 32, 3)
    print(net(images))
    print(fl.compile(net, *INPUTS)(images))  # recorded once: the same numbers, faster


if __name__ == "__main__":
    main(sys.argv[1])
