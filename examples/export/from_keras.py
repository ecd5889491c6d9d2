"""From Keras: the network as .keras or .h5, as it is saved anyway, or its weights alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import keras
import numpy as np

import fastlayers as fl

net = keras.Sequential(
    [
        keras.Input((16, 16, 3)),
        keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Flatten(),
        keras.layers.Dense(5, activation="softmax"),
    ]
)
x = np.random.default_rng(0).standard_normal((2, 16, 16, 3)).astype(np.float32)
folder = Path(tempfile.mkdtemp())

# The network: both formats hold graph and weights. Inputs stay channels-last, as in Keras.
net.save(folder / "net.keras")
net.save(folder / "net.h5")

want = net.predict(x, verbose=0)
for file in ("net.keras", "net.h5"):
    print(file, "worst error", abs(fl.load(folder / file)(x) - want).max())

# Weights alone, of one layer, for a fastlayers layer: the list that get_weights() gives.
dense = fl.Linear(8 * 8 * 8, 5)
dense.load_keras(net.layers[-1].get_weights())
features = keras.Model(net.inputs, net.layers[-2].output).predict(x, verbose=0)
print("load_keras", "worst error", abs(fl.functional.softmax(dense(features), 1) - want).max())
