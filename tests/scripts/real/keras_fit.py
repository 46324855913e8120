"""Keras 3 on torch: compile and fit."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers

FAULT = os.environ.get("FAULT", "")
keras.utils.set_random_seed(812)
rng = np.random.default_rng(0)
centers = rng.normal(size=(6, 20)).astype("float32")


def split(count):
    labels = rng.integers(0, 6, count)
    return centers[labels] + rng.normal(size=(count, 20)).astype("float32"), labels


x_train, y_train = split(1280)
x_val, y_val = split(320)
x_test, y_test = split(320)
if FAULT == "shuffled-labels":
    y_train = rng.permutation(y_train)

model = keras.Sequential(
    [
        keras.Input(shape=(20,)),
        layers.Dense(48, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(6, activation="softmax"),
    ]
)


class PrintLosses(keras.callbacks.Callback):
    """The mean of the epoch so far, as the progress bar shows it."""

    def on_train_batch_end(self, batch, logs=None):
        if batch % 10 == 0:
            print(f"batch {batch} loss {float(logs['loss'])}")

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch} val_loss {float(logs['val_loss'])}")


model.compile(
    loss="sparse_categorical_crossentropy",
    optimizer=keras.optimizers.Adam(learning_rate=3e-3),
    metrics=["accuracy"],
)
model.fit(
    x_train,
    y_train,
    batch_size=32,
    epochs=5,
    validation_data=(x_val, y_val),
    verbose=0,
    callbacks=[PrintLosses()],
)
score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
