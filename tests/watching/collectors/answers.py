"""A model whose predictions are known: what loss functions are given can be checked by hand."""

import torch
from torch import nn

from holter import Run
from watching.collectors.trainings import watching


class Answer(nn.Module):
    """Answers what it was made with."""

    def __init__(self, prediction):
        super().__init__()
        self.value = nn.Parameter(torch.as_tensor(prediction).clone())

    def forward(self):
        return self.value * 1


def record_calls(path, prediction, *losses, steps=1, **options):
    """The run of a loop that adds up the losses and steps, without moving anything."""
    model = Answer(prediction)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(path, model, optimizer, **options):
        for step in range(steps):
            outputs = model()
            parts = [
                loss(outputs, step) if loss.__code__.co_argcount > 1 else loss(outputs)
                for loss in losses
            ]
            sum(part.sum() for part in parts).backward()
            optimizer.step()
    return Run.load(path)


def only(run, signal, owner):
    """The one value of a signal."""
    (value,) = run[signal][owner].values.tolist()
    return value
