"""Train a classifier with Keras on its torch backend."""

import json
import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.randn(480, 8).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int64")
history = {"loss": [], "val_loss": []}


class Losses(keras.callbacks.Callback):
    """Keras reports the mean of an epoch so far: undo it."""

    def on_train_batch_end(self, batch, logs=None):
        total = logs["loss"] * (batch + 1)
        history["loss"].append(total - (self.total if batch else 0.0))
        self.total = total


model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(2),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
fitted = model.fit(
    x[:400],
    y[:400],
    batch_size=40,
    epochs=4,
    validation_data=(x[400:], y[400:]),
    verbose=0,
    callbacks=[Losses()],
)
history["val_loss"] = fitted.history["val_loss"]
print(fitted.history)

if "HISTORY" in os.environ:
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
