"""A classifier of images, as in Keras: Conv2D(8, 3, activation="relu"), Flatten, Dense(2, activation="softmax").

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_conv2d.py net.npz``; without a file
its weights are drawn.
"""

import sys

import numpy as np

import fastlayers as fl


def network(features: bool = False) -> fl.Layer:
    conv = fl.Conv2d(3, 8, kernel_size=3, activation="relu", layout="nhwc")
    size = 30 * 30 * 8
    dense = [fl.Linear(size, 8, activation="relu"), fl.Linear(8, 2)] if features else [fl.Linear(size, 2)]
    return fl.Sequential(conv, fl.Flatten(), *dense, fl.Softmax(-1))


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
