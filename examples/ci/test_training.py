"""Tests of a training, as a team has them beside the tests of its code."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import holter


def make_model():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))


def setup():
    torch.manual_seed(0)
    inputs = torch.randn(512, 20)
    labels = inputs[:, :3].argmax(dim=1)
    train = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return holter.Setup.of(model, optimizer, nn.CrossEntropyLoss(), train)


def test_trains(holter_trains):
    holter_trains(setup, steps=100)


def test_memorises_a_batch(holter_overfit_batch):
    holter_overfit_batch(setup, steps=200)
