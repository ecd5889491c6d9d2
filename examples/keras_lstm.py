"""LSTM(8) and Dense(2), as in Keras: of the last step or, with return_sequences, of all, and with return_state the states.

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_lstm.py net.npz``; without a file
its weights are drawn.
"""

import sys

import numpy as np

import fastlayers as fl


class Net(fl.Layer):
    def __init__(self, sequences: bool, states: bool) -> None:
        self.lstm, self.dense = fl.LSTM(32, 8, batch_first=True), fl.Linear(8, 2)
        self.sequences, self.states = sequences, states

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        y = self.dense(out if self.sequences else h[-1])
        return (y, h[0], c[0]) if self.states else y


def network(sequences: bool = False, states: bool = False) -> fl.Layer:
    return Net(sequences, states)


INPUTS = [fl.graph.Input("x", ("n", 3, 32))]


def main(path: str = "") -> None:
    net = network()
    if path:
        net.load_keras(list(fl.load_weights(path).values()))
    else:  # numbers of no meaning, to see it run
        net.load_state_dict({name: 0.1 * np.random.randn(*shape) for name, shape in net.tensor_shapes().items()})
    print(net(np.random.rand(4, 3, 32)))


if __name__ == "__main__":
    main(*sys.argv[1:])
