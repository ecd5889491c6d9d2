"""A dense layer on images, as in Keras: Dense(8, activation="relu"), Flatten, Dense(2).

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_dense.py net.npz``; without a file
its weights are drawn.
"""

import sys

import numpy as np

import fastlayers as fl


def network() -> fl.Layer:
    return fl.Sequential(fl.Linear(3, 8, activation="relu"), fl.Flatten(), fl.Linear(32 * 32 * 8, 2))


INPUTS = [fl.graph.Input("images", ("n", 32, 32, 3))]


def main(path: str = "") -> None:
    net = network()
    if path:
        net.load_keras(list(fl.load_weights(path).values()))
    else:  # numbers of no meaning, to see it run
        net.load_state_dict({name: 0.1 * np.random.randn(*shape) for name, shape in net.tensor_shapes().items()})
    images = np.random.rand(4, 32, 32, 3)
    print(net(images))
    print(fl.compile(net, *INPUTS)(images))  # recorded once: the same values, faster


if __name__ == "__main__":
    main(*sys.argv[1:])
