"""The sweeps of a range test, made in shares and put together."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from holter.diagnosis.facts.rate_range import read
from holter.lab.experiments import named_experiment
from holter.lab.running import conduct
from holter.lab.setup import Setup
from holter.lab.sharing import Share
from holter.lab.writing import Lab
from holter.record import Run
from holter.record.events import LrRangeNote
from holter.record.signals import LR_RANGE_END, LR_RANGE_HELD
from lab.experiments.trainings import loader

OPTIONS = {"lr-range": {"points": 20, "repeats": 2, "confirm": 2, "steps": 20}}


def line(seed: int = 0) -> Setup:
    torch.manual_seed(seed)
    x = torch.randn(256, 6)
    y = x @ torch.randn(6, 1)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Setup.of(model, optimizer, nn.MSELoss(), loader(x, y, batch=32))


def ranged(lab: Lab, setup: Setup) -> Run:
    with lab:
        conduct([named_experiment("lr-range")], setup, lab, OPTIONS)
    return Run.load(lab.path)


def test_a_share_makes_its_sweeps_and_the_whole_takes_them_over(tmp_path: Path) -> None:
    parts = [ranged(Lab(tmp_path / f"{n}", share=Share(n, 2)), line()) for n in range(2)]
    assert [list(part[LR_RANGE_HELD]) for part in parts] == [["sweep 0"], ["sweep 1"]]
    curves = [part[LR_RANGE_HELD][f"sweep {n}"].values for n, part in enumerate(parts)]
    assert curves[0].tobytes() != curves[1].tobytes()  # another order of batches
    whole = ranged(Lab(tmp_path / "whole", elsewhere=parts), line())
    for number, curve in enumerate(curves):
        assert whole[LR_RANGE_HELD][f"sweep {number}"].values.tobytes() == curve.tobytes()
    assert LR_RANGE_END in whole  # the short trainings are made by who puts them together
    assert np.isfinite(read(whole).suggestion.rate)


def test_a_sweep_from_another_start_is_repeated(tmp_path: Path) -> None:
    other = ranged(Lab(tmp_path / "other", share=Share(1, 2)), line(seed=1))
    whole = ranged(Lab(tmp_path / "whole", elsewhere=[other]), line())
    told = [event.what.note for event in whole.events_of(LrRangeNote)]
    assert any("sweep 1 began from another start" in text for text in told)
    curves = [run[LR_RANGE_HELD]["sweep 1"].values for run in (other, whole)]
    assert curves[0].tobytes() != curves[1].tobytes()
