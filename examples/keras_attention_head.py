"""One attention head, without scaling, that returns scores, weights and output; queries of any length.

In Keras ``numpy.savez("net.npz", *model.get_weights())``, then ``python examples/keras_attention_head.py net.npz``;
without a file its weights are drawn.
"""

import sys

import numpy as np

import fastlayers as fl
from fastlayers.functional import scaled_dot_product_attention as sdpa


class Net(fl.Layer):
    def __init__(self) -> None:
        # Keras' list begins with what is farthest from the result: the key, which is also transposed.
        self.key, self.query, self.value = fl.Linear(32, 4), fl.Linear(32, 4), fl.Linear(32, 4)

    def forward(self, query, key, value):
        q, k, v = self.query(query), self.key(key), self.value(value)
        output, weights, scores = sdpa(q, k, v, scale=1.0, need_weights=True, need_scores=True)
        return scores, weights, output


network = Net
INPUTS = [*(fl.graph.Input(name, ("n", length, 32)) for name, length in (("query", "l"), ("key", 1), ("value", 1)))]


def main(path: str = "") -> None:
    net = network()
    if path:
        net.load_keras(list(fl.load_weights(path).values()))
    else:  # numbers of no meaning, to see it run
        net.load_state_dict({name: 0.1 * np.random.randn(*shape) for name, shape in net.tensor_shapes().items()})
    scores, weights, output = net(*(np.random.rand(4, length, 32) for length in (16, 1, 1)))
    print(scores.shape, weights.shape, output.shape)


if __name__ == "__main__":
    main(*sys.argv[1:])
