"""From TensorFlow: the network as TFLite, which `tf.lite` writes of a Keras model, a SavedModel or a function."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import fastlayers as fl

weight = tf.Variable(tf.random.normal((3, 3, 3, 8)))


@tf.function(input_signature=[tf.TensorSpec((1, 16, 16, 3), tf.float32)])
def net(x: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, weight, strides=2, padding="SAME")), axis=(1, 2))


# A network; without `optimizations` its weights stay float32.
converter = tf.lite.TFLiteConverter.from_concrete_functions([net.get_concrete_function()])
file = Path(tempfile.mkdtemp()) / "net.tflite"
file.write_bytes(converter.convert())

x = np.random.default_rng(0).standard_normal((1, 16, 16, 3)).astype(np.float32)
print("net.tflite", "worst error", abs(fl.load(file)(x) - net(x).numpy()).max())
