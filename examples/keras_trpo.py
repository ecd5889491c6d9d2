"""The network of TRPO (2015) for a robot: from what it observes to the mean of its actions, by 30 hidden units.

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_trpo.py net.npz``; without a file
its weights are drawn.
"""

import sys

import numpy as np

import fastlayers as fl


def network() -> fl.Layer:
    return fl.Sequential(fl.Linear(20, 30, activation="tanh"), fl.Linear(30, 6))


INPUTS = [fl.graph.Input("observation", ("n", 20))]


def main(path: str = "") -> None:
    net = network()
    if path:
        net.load_keras(list(fl.load_weights(path).values()))
    else:  # numbers of no meaning, to see it run
        net.load_state_dict({name: 0.1 * np.random.randn(*shape) for name, shape in net.tensor_shapes().items()})
    act = fl.compile(net, *INPUTS)  # recorded once
    print(act(np.random.rand(1, 20)))


if __name__ == "__main__":
    main(*sys.argv[1:])
