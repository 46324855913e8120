"""The experiment that saves a training, loads it, and goes on both ways."""

from pathlib import Path

import pytest
import torch
from setups import KINDS
from torch import Tensor, nn

from holter import check
from holter.lab.experiments._repeating.saving import AVERAGE, POSITION, checkpoint_parts
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record import Run
from holter.record.events import StateUnsaved
from holter.record.signals import RESUME_DEVIATION, RESUME_LOSS, RESUME_RATE

RULE = "unsaved-state"


class Counting(nn.Linear):
    """A layer whose scale depends on how often it was called, which no `state_dict` holds."""

    calls = 0

    def forward(self, values: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(values) / (1 + 0.1 * self.calls)


def made(module: nn.Module, **more: object) -> Setup:
    torch.manual_seed(0)
    model = nn.Sequential(module, nn.Dropout(0.2), nn.Linear(4, 1))
    batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(5)]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    return Setup.of(model, optimizer, nn.MSELoss(), batches, scheduler=scheduler, **more)


def deviation(run: Run, trial: str) -> float:
    return float(run[RESUME_DEVIATION][trial].values[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_complete_checkpoint_continues_bit_for_bit(kind: str, tmp_path: Path) -> None:
    if kind == "in_bfloat16_with_nan":
        pytest.skip("NaN has no distance")
    resumed = run("resume", KINDS[kind](), tmp_path / "run")
    assert deviation(resumed, "repeated") == 0
    assert deviation(resumed, "everything loaded") == 0
    assert not check(resumed, select=[RULE]).findings


def test_each_part_that_is_left_out_is_measured(tmp_path: Path) -> None:
    setup = made(nn.Linear(4, 4))
    for batch in setup.batches(4):  # in the middle of a training
        setup.step(batch)
        setup.schedulers[0].step()
    resumed = run("resume", setup, tmp_path / "run")
    for part in ("optimizer", "random numbers"):
        assert deviation(resumed, f"without {part}") > 0.01
    assert deviation(resumed, "weights only") > 0.1
    rates = {trial: float(series.values[-1]) for trial, series in resumed[RESUME_RATE].items()}
    assert rates["everything loaded"] == rates["uninterrupted"] == pytest.approx(0.1 * 0.5**13)
    assert rates["weights only"] == pytest.approx(0.05)  # the schedule begins again
    losses = {trial: float(series.values[-1]) for trial, series in resumed[RESUME_LOSS].items()}
    assert losses["without optimizer"] == losses["uninterrupted"]  # the model is the same


def test_state_outside_of_state_dict_is_named(tmp_path: Path) -> None:
    resumed = run("resume", made(Counting(4, 4)), tmp_path / "run")
    (event,) = resumed.events_of(StateUnsaved)
    assert event.what.names == ("0.calls",)
    (finding,) = check(resumed, select=[RULE]).findings
    assert "`0.calls`" in finding.summary


@pytest.mark.parametrize(
    ("save", "expected"),
    [
        ("{'model': m, 'optimizer': o, 'scheduler': s, 'ema': e}", {AVERAGE: True}),
        ("{'model': m, 'optimizer': o, 'scheduler': s}", {AVERAGE: False}),
        ("dict(optimizer=o, scheduler=s, ema=e)", {AVERAGE: True}),
    ],
)
@pytest.mark.parametrize("within", [False, True])
def test_what_the_script_saves_is_read(
    save: str, expected: dict[str, bool], within: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    indent = "        " if within else "    "
    script.write_text(
        "for epoch in range(3):\n    for batch in loader:\n        loss.backward()\n"
        f"{indent}torch.save({save}, 'c.pt')\n"
    )
    setup = made(nn.Linear(4, 4))
    average = torch.optim.swa_utils.AveragedModel(setup.model)
    setup = made(nn.Linear(4, 4), others=[average])
    object.__setattr__(setup, "source", f"{script}:3")
    found = checkpoint_parts(setup)
    position = {POSITION: False} if within else {}
    assert found == {"optimizer": True, "scheduler": True, **expected, **position}


def test_weights_alone_are_not_meant_for_resuming(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("torch.save({'model': model.state_dict()}, 'c.pt')\n")
    setup = made(nn.Linear(4, 4))
    object.__setattr__(setup, "source", f"{script}:1")
    assert checkpoint_parts(setup) == "the script saves weights only, not for resuming"
