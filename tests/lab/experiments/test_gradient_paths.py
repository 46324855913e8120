from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from holter import Run
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.signals import PATH_CHANGE, PATH_CUTS, PATH_STOPS


class Experts(nn.Module):
    """Two experts, of which a router chooses; `how` it chooses."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.router = nn.Linear(4, 2)
        self.experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(2))
        self.unused = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.router(x).softmax(dim=1)
        results = torch.stack([expert(x) for expert in self.experts], dim=1)
        rows, chosen = torch.arange(len(x)), gates.argmax(dim=1)
        if self.how == "no_grad":
            with torch.no_grad():
                weights = self.router(x).softmax(dim=1)
            return (weights[:, :, None] * results).sum(dim=1), gates.mean()
        if self.how == "weighted":
            return gates[rows, chosen, None] * results[rows, chosen], gates.mean()
        return results[rows, chosen], gates.mean()


def measured(how: str, folder: Path) -> Run:
    torch.manual_seed(0)
    model = Experts(how)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        scores, balance = model(batch[0])
        return functional.cross_entropy(scores, batch[1]) + balance

    batches = [(torch.randn(32, 4), torch.randint(0, 3, (32,)))]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return run("gradient-paths", Setup.of(model, optimizer, loss, batches), folder)


def test_weights_behind_a_choice_matter_and_have_no_gradient(tmp_path: Path) -> None:
    for how, cut in (("chosen", "argmax"), ("no_grad", "no_grad")):
        made = measured(how, tmp_path / how)
        changes = {name: float(series.values[0]) for name, series in made[PATH_CHANGE].items()}
        assert set(changes) == {"", "router", "unused"}
        assert changes["router"] > 0.1
        assert changes["unused"] == 0
        assert cut in made[PATH_CUTS]
        assert not made[PATH_STOPS][""].values.any()


def test_a_weighted_choice_reaches_the_router(tmp_path: Path) -> None:
    assert set(measured("weighted", tmp_path / "run")[PATH_CHANGE]) == {"", "unused"}
