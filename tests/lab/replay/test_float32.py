"""Weights in half precision are widened for a trial, and narrow again afterwards."""

from pathlib import Path

import pytest
import torch
from failures import failed, window
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from holter.diagnosis.facts.replayed_changes import CureOutcome, Normal, judged
from holter.lab.changes.precision import FLOAT32
from holter.lab.replay.failing import BEYOND, locate
from holter.lab.setup import Setup


class Squares(nn.Module):
    """Squares over their mean; float16 holds them up to 65504 only."""

    def __init__(self, cast: torch.dtype | None = None) -> None:
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 1)
        self.cast = cast

    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x).square()
        h = h / (h.mean(1, keepdim=True) + 1e-3)
        return self.head(h if self.cast is None else h.to(self.cast))


def narrow(cast: torch.dtype | None = None) -> Setup:
    torch.manual_seed(0)
    x = torch.randn(1024, 8)
    y = x[:, :1].sign()
    x[700] *= 1000
    loader = DataLoader(TensorDataset(x.half(), y.half()), 32, shuffle=True)
    model = Squares(cast).half()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-4)
    return Setup.of(model, optimizer, nn.L1Loss(), loader)


@pytest.mark.parametrize(
    ("cast", "outcome"), [(None, CureOutcome.CURES), (torch.half, CureOutcome.NOT_APPLICABLE)]
)
def test_float32_cures_what_half_precision_cannot_hold(
    tmp_path: Path, cast: torch.dtype | None, outcome: CureOutcome
) -> None:
    run = failed(tmp_path / "run", narrow(cast), epochs=1)
    setup = narrow(cast)
    seen = window(run, setup)
    plain = seen.play(beyond=BEYOND)
    band = locate(seen, plain)
    wide = seen.play([FLOAT32], beyond=BEYOND).measure(seen.failing, seen.onset)
    unchanged = plain.measure(seen.failing, seen.onset)
    found = judged(str(FLOAT32.id), wide, unchanged, Normal(band))
    assert found.outcome is outcome, found.says
    assert {each.dtype for each in setup.model.parameters()} == {torch.half}
    again = seen.play()
    assert again.first_bad == seen.failing
    assert again.losses[:-1] == plain.losses[: len(again.losses) - 1]
