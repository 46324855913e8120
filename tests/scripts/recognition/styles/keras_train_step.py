"""Keras on torch with a `train_step` of the user's own."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import torch

torch.manual_seed(0)


class CustomModel(keras.Model):
    def train_step(self, data):
        x, y = data
        self.zero_grad()
        y_pred = self(x, training=True)
        loss = self.compute_loss(y=y, y_pred=y_pred)
        loss.backward()
        trainable_weights = [v for v in self.trainable_weights]
        gradients = [v.value.grad for v in trainable_weights]
        with torch.no_grad():
            self.optimizer.apply(gradients, trainable_weights)
        return {"loss": loss}


inputs = keras.Input(shape=(8,))
outputs = keras.layers.Dense(1)(keras.layers.Dense(16, activation="relu")(inputs))
model = CustomModel(inputs, outputs)
model.compile(optimizer="adam", loss="mse")
x = torch.randn(512, 8)
y = x.sum(1, keepdim=True)
dataset = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
)
model.fit(dataset, epochs=3, verbose=0)
