"""Which inputs of a model change an output, as the experiment input-use measures it."""

from pathlib import Path

import torch
from torch import Tensor, nn

from holter import Run
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.signals import USE_CHANGE


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return self.layer(x), lengths // 2


class Picks(Net):
    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self.layer(batch["x"])


def measured(model: nn.Module, batch: dict[str, Tensor], folder: Path, *, whole: bool) -> set[str]:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        made = model(batch) if whole else model(batch["x"], batch["n"])[0]
        return (made.squeeze(1) - batch["y"]).square().mean()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    setup = Setup.of(model, optimizer, loss, [batch])
    run("input-use", setup, folder)
    changes = Run.load(folder)[USE_CHANGE]
    return {name for name, series in changes.items() if series.values.max() == 0}


def batch() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {"x": torch.randn(16, 4), "n": torch.randint(2, 90, (16,)), "y": torch.randn(16)}


def test_whole_numbers_are_outputs(tmp_path: Path) -> None:
    assert measured(Net(), batch(), tmp_path / "run", whole=False) == set()


def test_a_model_takes_what_it_needs_of_a_dict(tmp_path: Path) -> None:
    assert measured(Picks(), batch(), tmp_path / "run", whole=True) == set()


def test_an_argument_without_effect_is_seen(tmp_path: Path) -> None:
    class Drops(Net):
        def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
            return self.layer(x), x

    assert measured(Drops(), batch(), tmp_path / "run", whole=False) == {"input lengths"}
