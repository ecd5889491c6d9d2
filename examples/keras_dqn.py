"""The network of DeepMind's DQN (2015): from four frames of a game to the value of each of 18 actions.

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_dqn.py net.npz``; without a file
its weights are drawn.
"""

import sys

import numpy as np

import fastlayers as fl


def network() -> fl.Layer:
    return fl.Sequential(
        fl.Conv2d(4, 32, kernel_size=8, stride=4, activation="relu", layout="nhwc"),
        fl.Conv2d(32, 64, kernel_size=4, stride=2, activation="relu", layout="nhwc"),
        fl.Conv2d(64, 64, kernel_size=3, activation="relu", layout="nhwc"),
        fl.Flatten(),
        fl.Linear(7 * 7 * 64, 512, activation="relu"),
        fl.Linear(512, 18),
    )


INPUTS = [fl.graph.Input("frames", ("n", 84, 84, 4))]


def main(path: str = "") -> None:
    net = network()
    if path:
        net.load_keras(list(fl.load_weights(path).values()))
    else:  # numbers of no meaning, to see it run
        net.load_state_dict({name: 0.1 * np.random.randn(*shape) for name, shape in net.tensor_shapes().items()})
    model = fl.compile(net, *INPUTS)  # recorded once
    print(model(np.random.rand(1, 84, 84, 4)).argmax())  # the action to take


if __name__ == "__main__":
    main(*sys.argv[1:])
