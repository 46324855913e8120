"""Fan-in against what the shapes of layers say."""

import torch
from torch import nn
from torch.nn.utils import parametrizations

from holter import Run
from holter.record.signals import PARAMETER_FAN_IN
from watching.collectors.trainings import watching


class Scaled(nn.Linear):
    """An equalised learning rate: weights of size 1 that are scaled on every call."""

    def forward(self, x):
        return nn.functional.linear(x, self.weight * self.in_features**-0.5, self.bias)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 9)
        self.head.weight = self.embedding.weight
        self.table = nn.Parameter(torch.ones(5, 4))


def fans(path, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watching(path, model, optimizer):
        for _ in range(3):
            for each in model.parameters():
                each.grad = torch.zeros_like(each)
            optimizer.step()
    run = Run.load(path)
    if PARAMETER_FAN_IN not in run:
        return {}
    return {name: s.values.tolist() for name, s in run[PARAMETER_FAN_IN].items() if len(s)}


def test_of_each_kind_of_layer(tmp_path):
    model = nn.ModuleDict(
        {
            "linear": nn.Linear(6, 5),
            "conv": nn.Conv2d(4, 8, 3, groups=2),
            "up": nn.ConvTranspose2d(4, 8, 4, stride=2),
            "gru": nn.GRU(3, 5),
            "cell": nn.LSTMCell(3, 5),
            "attention": nn.MultiheadAttention(8, 2),
        }
    )
    assert fans(tmp_path / "run", model) == {
        "linear.weight": [6],
        "conv.weight": [18],
        "up.weight": [16],  # of 4 x 16 products, every fourth falls on an output
        "gru.weight_ih_l0": [3],
        "gru.weight_hh_l0": [5],
        "cell.weight_ih": [3],
        "cell.weight_hh": [5],
        "attention.in_proj_weight": [8],
        "attention.out_proj.weight": [8],
    }


def test_not_of_what_is_scaled_or_no_layer(tmp_path):
    model = nn.ModuleDict(
        {
            "scaled": Scaled(6, 5),
            "normed": parametrizations.weight_norm(nn.Linear(6, 5)),
            "old": nn.utils.spectral_norm(nn.Linear(6, 5)),
            "norm": nn.LayerNorm((3, 4)),
            "tied": Tied(),
        }
    )
    assert fans(tmp_path / "run", model) == {}
