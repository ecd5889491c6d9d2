"""Embedding, dot-product attention, the mean over time and Dense(3, activation="softmax"), on tokens of any length.

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_attention.py net.npz``; without a file
its weights are drawn.
"""

import sys

import numpy as np

import fastlayers as fl
from fastlayers import functional as F


class Net(fl.Layer):
    def __init__(self) -> None:
        self.embedding, self.attention, self.dense = fl.Embedding(64, 8), fl.Attention(), fl.Linear(8, 3)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = self.attention([x, x])
        return F.softmax(self.dense(F.mean_over_time(x)))


network = Net
INPUTS = [fl.graph.Input("tokens", ("n", "length"), "int64")]


def main(path: str = "") -> None:
    net = network()
    if path:
        net.load_keras(list(fl.load_weights(path).values()))
    else:  # numbers of no meaning, to see it run
        net.load_state_dict({name: 0.1 * np.random.randn(*shape) for name, shape in net.tensor_shapes().items()})
    for length in (5, 3):
        print(net(np.random.randint(0, 64, (4, length))))


if __name__ == "__main__":
    main(*sys.argv[1:])
