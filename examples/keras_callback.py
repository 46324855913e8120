"""Keras on torch: a callback of `model.fit` records the training.

python examples/keras_callback.py
"""

import os

os.environ["KERAS_BACKEND"] = "torch"  # before keras is imported

import keras
import numpy as np

from holter.integrations.keras import HolterCallback

keras.utils.set_random_seed(0)
inputs = np.random.default_rng(0).normal(size=(1280, 8)).astype("float32")
labels = (inputs[:, 0] * inputs[:, 1] > 0).astype("int64")

model = keras.Sequential(
    [
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(2),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
model.fit(
    inputs,
    labels,
    batch_size=32,
    epochs=10,
    validation_split=0.2,
    verbose=2,
    callbacks=[HolterCallback()],
)
