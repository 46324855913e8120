"""Trainings that fail, each as a watch records it and as a setup that can replay it."""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter.lab.replay.window import FailureWindow
from holter.lab.setup import Setup
from holter.watching.blackbox.capture import captures_in, load_capture


def by_hand(model: nn.Module, batch: list[Tensor]) -> Tensor:
    """A cross-entropy that takes the logarithm of 0 once the sigmoid is sure."""
    inputs, labels = batch
    p = torch.sigmoid(model(inputs)).squeeze(1)
    return -(labels * torch.log(p) + (1 - labels) * torch.log(1 - p)).mean()


def parts(*, bad: float = 1e8, lr: float = 1e-3) -> Setup:
    """A classifier that meets one sample it cannot bear."""
    torch.manual_seed(0)
    x = torch.randn(2048, 8)
    y = (x[:, 0] > 0).float()
    x[1500] = bad
    loader = DataLoader(TensorDataset(x, y), 32, shuffle=True)
    model = nn.Sequential(
        nn.Linear(8, 16),
        nn.BatchNorm1d(16, affine=True),
        nn.Dropout(0.1),
        nn.ReLU(),
        nn.Linear(16, 1),
    )
    model[1] = nn.Identity() if bad else model[1]
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    return Setup.of(model, optimizer, by_hand, loader)


def failed(path: Path, setup: Setup, *, epochs: int = 2) -> Path:
    """Train under a watch until it is over; the run."""
    (optimizer,) = setup.optimizers
    with holter.watch(setup.model, optimizer, path, quiet=True, budget=None):
        for _ in range(epochs):
            for batch in setup.train:
                loss = setup.loss(batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return path


def window(run: Path, setup: Setup) -> FailureWindow:
    """The failure of a run in a new setup."""
    (folder, *_) = captures_in(run)
    return FailureWindow(setup, load_capture(folder), holter.Run.load(run))
