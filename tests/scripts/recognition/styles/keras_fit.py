"""Keras on torch: compile and fit."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
x = np.random.rand(640, 8).astype("float32")
y = x[:, :3].argmax(1)
model = keras.Sequential(
    [keras.Input((8,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")]
)
model.compile(
    loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.Adam(1e-2),
    metrics=["accuracy"],
)  # fmt: skip
model.fit(x[:512], y[:512], batch_size=32, epochs=3, validation_data=(x[512:], y[512:]), verbose=0)
model.save("classifier.keras")
