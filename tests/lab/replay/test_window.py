"""A captured failure runs again exactly as it was."""

from pathlib import Path

import pytest
import torch
from failures import failed, parts, window
from torch import nn

from holter.lab.changes.learning_rate import learning_rate_times
from holter.lab.replay.window import WindowEdit
from holter.lab.setup import Setup
from holter.record.errors import HolterError


def test_it_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    run = failed(tmp_path / "run", parts())
    seen = window(run, parts())
    trial = seen.play()
    assert trial.steps[-1] == seen.failing
    assert trial.first_bad == seen.failing
    for step, loss in zip(trial.steps[:-1], trial.losses[:-1], strict=True):
        assert torch.tensor(loss) == torch.tensor(seen.recorded(step))
    again = seen.play()
    assert again.losses[:-1] == trial.losses[:-1]
    assert again.norms[:-1] == trial.norms[:-1]


def test_changes_change(tmp_path: Path) -> None:
    seen = window(failed(tmp_path / "run", parts()), parts())
    plain = seen.play()
    skipped = seen.play(edit=WindowEdit(skips=frozenset([seen.failing])), beyond=1)
    assert skipped.first_bad is None
    assert seen.failing not in skipped.steps
    slower = seen.play([learning_rate_times(0.1)])
    assert slower.losses[0] == plain.losses[0]
    assert slower.losses[3] != plain.losses[3]


def test_another_model_is_told(tmp_path: Path) -> None:
    run = failed(tmp_path / "run", parts())
    model = nn.Linear(8, 1)
    optimizer = torch.optim.Adam(model.parameters())
    other = Setup.of(model, optimizer, nn.MSELoss(), [])
    with pytest.raises(HolterError, match=r"changed since|no optimizer|No optimizer"):
        window(run, other)
