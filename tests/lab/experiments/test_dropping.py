"""What the measurement of dropout sees, and what it leaves out."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.lab.experiments._probing.dropping import dropping
from holter.lab.setup import Setup


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(functional.dropout(self.body(x), 0.8, self.training))


class Recurrent(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(8, 16, layers, dropout=0.9), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.gru(x.unsqueeze(1))[0][:, -1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(8, 2, dropout=0.7), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(x, x, x, need_weights=False)[0])


def stacked(share: float, *, first: bool = False, out: int = 4) -> nn.Module:
    drop = nn.Dropout(share)
    layers = [nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, out)]
    return nn.Sequential(*([drop, *layers] if first else [*layers[:2], drop, layers[2]]))


@pytest.mark.parametrize(
    ("make", "module", "share"),
    [
        (lambda: stacked(0.9), "2", 0.9),
        (lambda: stacked(0.9).eval(), "", 0),
        (lambda: stacked(0.0), "", 0),
        (lambda: stacked(0.8, first=True), "0", 0.8),  # features of a frozen model
        (lambda: stacked(0.8, first=True, out=8), "", 0),  # a denoising model
        (Functional, "", 0.8),
        (lambda: Recurrent(2), "gru", 0.9),
        (Attention, "attention", 0.7),
    ],
)
def test_the_largest_share(make: Callable[[], nn.Module], module: str, share: float) -> None:
    torch.manual_seed(0)
    model, x = make(), torch.randn(6, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return model(batch).square().mean()

    setup = Setup.of(model, optimizer, loss, [x])
    with dropping(setup) as dropped:
        setup.loss(x)
    assert dropped.largest == (module, pytest.approx(share))
    with dropping(setup) as dropped:
        pass
    assert dropped.largest == ("", 0.0)
