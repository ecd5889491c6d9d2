"""Writes seeds.npz: what Keras computes for the programs of two articles on four kinds of layers (fully connected, convolution,
LSTM, attention), and for the networks that their figures show.

The articles: "A Guide to Deep Learning Layers" and "Animated Guide to Four Deep Learning Layers", by one author, called the first
and the second here. They share their programs but for one each. Each program below says where it is from.

The programs were written for TensorFlow 2.2; here they are for Keras 3, with ``keras.ops`` where they call ``tf`` on symbolic
tensors. Their inputs are those of the articles (numpy, seed 42), made by `seed_inputs.py`; their weights come from
there too, since no version of Keras draws the same as another, so that only shapes and results are kept.

Run from the root of the repository: ``KERAS_BACKEND=jax python -m tests.goldens.make_seeds``; made with Keras 3.15 and jax 0.10.
With ``--check`` nothing is written: what this run computes, with this or another backend, is compared with the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from keras import Input, Model, ops
from keras.layers import LSTM, AdditiveAttention, Attention, Conv2D, Dense, Embedding, Flatten, GlobalAveragePooling1D

from .seed_inputs import INPUTS, weights
from .store import Case, read, write

FILE = Path(__file__).with_name("seeds.npz")


def dense() -> Any:
    """Both: "Using fully connected layers with the Keras Functional API". A dense layer on images."""
    inp = Input(shape=(32, 32, 3))
    hidden = Dense(8, activation="relu")(inp)
    flat = Flatten()(hidden)
    out = Dense(2)(flat)
    return Model(inputs=inp, outputs=out)


def conv2d() -> Any:
    """Both: "2D convolutional neural network built using the Keras Functional API". Its dense layer of 8 is not used there."""
    inp = Input(shape=(32, 32, 3))
    conv = Conv2D(filters=8, kernel_size=(3, 3), activation="relu")(inp)
    flat = Flatten()(conv)
    _feature_map = Dense(8, activation="relu")(flat)
    out = Dense(2, activation="softmax")(flat)
    return Model(inputs=inp, outputs=out)


def conv2d_through_features() -> Any:
    """The same with that layer between, as the text before the program describes it."""
    inp = Input(shape=(32, 32, 3))
    conv = Conv2D(filters=8, kernel_size=(3, 3), activation="relu")(inp)
    flat = Flatten()(conv)
    feature_map = Dense(8, activation="relu")(flat)
    out = Dense(2, activation="softmax")(feature_map)
    return Model(inputs=inp, outputs=out)


def lstm() -> Any:
    """Both: "Using an LSTM layer with the Keras Functional API", the first of three programs."""
    inp = Input(shape=(3, 32))
    out = Dense(2)(LSTM(8)(inp))
    return Model(inputs=inp, outputs=out)


def lstm_sequences() -> Any:
    """The second: return_sequences=True."""
    inp = Input(shape=(3, 32))
    out = Dense(2)(LSTM(8, return_sequences=True)(inp))
    return Model(inputs=inp, outputs=out)


def lstm_state() -> Any:
    """The third: return_state=True."""
    inp = Input(shape=(3, 32))
    lstm, hstate, cstate = LSTM(8, return_sequences=False, return_state=True)(inp)
    out = Dense(2)(lstm)
    return Model(inputs=inp, outputs=[out, hstate, cstate])


def lstm_sequences_state() -> Any:
    """Both at once, as the sentence after the third says."""
    inp = Input(shape=(3, 32))
    lstm, hstate, cstate = LSTM(8, return_sequences=True, return_state=True)(inp)
    out = Dense(2)(lstm)
    return Model(inputs=inp, outputs=[out, hstate, cstate])


def attention_head() -> Any:
    """The first: "Implementing a Single Attention Head with the Keras Functional API". Without scaling, queries of any length."""
    q_in = Input(shape=(None, 32))
    k_in = Input(shape=(1, 32))
    v_in = Input(shape=(1, 32))
    q = Dense(4, activation="linear")(q_in)
    k = Dense(4, activation="linear")(k_in)
    v = Dense(4, activation="linear")(v_in)
    score = ops.matmul(q, ops.transpose(k, (0, 2, 1)))
    attention = ops.softmax(score, axis=-1)
    output = ops.matmul(attention, v)
    return Model(inputs=[q_in, k_in, v_in], outputs=[score, attention, output])


def attention() -> Any:
    """The second: "Using Dot-Product attention layer with the Keras Functional API", called with two lengths."""
    tokens = Input(shape=(None,), dtype="int32")
    embedder = Embedding(input_dim=64, output_dim=8)
    embedding = embedder(tokens)
    attention = Attention()([embedding, embedding])
    pool = GlobalAveragePooling1D()(attention)
    out = Dense(3, activation="softmax")(pool)
    return Model(inputs=tokens, outputs=out)


def additive_attention() -> Any:
    """The same with additive attention, as the section "Additive Attention" of both describes it; with its weights."""
    tokens = Input(shape=(None,), dtype="int32")
    embedding = Embedding(input_dim=64, output_dim=8)(tokens)
    attention, scores = AdditiveAttention()([embedding, embedding], return_attention_scores=True)
    pool = GlobalAveragePooling1D()(attention)
    out = Dense(3, activation="softmax")(pool)
    return Model(inputs=tokens, outputs=[out, scores])


def dqn() -> Any:
    """Both, figure "Deep convolutional neural network used in the 2015 DeepMind DQN Atari work"; 18 actions."""
    frames = Input(shape=(84, 84, 4))
    x = Conv2D(32, 8, strides=4, activation="relu")(frames)
    x = Conv2D(64, 4, strides=2, activation="relu")(x)
    x = Conv2D(64, 3, strides=1, activation="relu")(x)
    x = Dense(512, activation="relu")(Flatten()(x))
    return Model(inputs=frames, outputs=Dense(18)(x))


def trpo() -> Any:
    """Both, figure "A fully connected layer being used to power the reinforcement learning algorithm TRPO"; sizes are chosen."""
    observation = Input(shape=(20,))
    hidden = Dense(30, activation="tanh")(observation)
    return Model(inputs=observation, outputs=Dense(6)(hidden))


PROGRAMS: list[Callable[[], Any]] = [
    dense, conv2d, conv2d_through_features, lstm, lstm_sequences, lstm_state, lstm_sequences_state, attention_head, attention,
    additive_attention, dqn, trpo,
]  # fmt: skip


def run(program: Callable[[], Any]) -> Case:
    """The shapes of the weights, and the results for one set of inputs after the other."""
    model = program()
    shapes = [tuple(w.shape) for w in model.weights]
    model.set_weights(weights(program.__name__, shapes))
    outputs = []
    for inputs in INPUTS[program.__name__]():
        result = model(inputs if len(inputs) > 1 else inputs[0])
        outputs += [ops.convert_to_numpy(y) for y in (result if isinstance(result, list) else [result])]
    return {"shapes": [np.array(shape) for shape in shapes], "outputs": outputs}


def main() -> None:
    found = {program.__name__: run(program) for program in PROGRAMS}
    if "--check" not in sys.argv:
        write(FILE, found)
        return
    for name, stored in read(FILE).items():
        for got, want in zip(found[name]["outputs"], stored["outputs"], strict=True):
            worst = np.max(np.abs(got - want))
            print(f"{name}: {got.shape} {worst:.1e}" + (" differs" if worst > 4e-6 * max(1, np.max(np.abs(want))) else ""))


if __name__ == "__main__":
    main()
