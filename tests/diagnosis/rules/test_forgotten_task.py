"""forgotten-task: the loss of an old task, before and after."""

import numpy as np
import pytest

from holter.diagnosis.rules.forgotten_task import forgotten_task
from holter.record import Run
from holter.record.findings import Clear, Finding, NotExamined
from holter.record.signals import LOSS, METRIC_LOGGED
from synthetic import run_of, said, series


def run(losses: list[float], *, name: str = "also.old", steps: int = 100) -> Run:
    at = np.linspace(0, steps - 1, len(losses)).astype(int).tolist()
    signals = {
        LOSS: {"": np.linspace(2, 0.5, steps)},
        METRIC_LOGGED: {name: series(losses, at)},
    }
    return run_of(signals)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run([0.5, 0.9, 1.4, 2.0]), Finding),
        (run([0.5, 0.52, 0.55, 0.56]), Clear),
        (run([0.5, 0.4, 0.3]), Clear),
        (run([0.001, 0.002, 0.004, 0.01]), Clear),  # small beside the training loss
        (run([0.001, 0.1, 0.3, 0.5]), Finding),
        (run([0.5, 1.5, 0.4, 1.6, 0.5, 1.4, 0.5, 0.9]), Clear),  # scatter
        (run([0.5, 2.0], steps=10), NotExamined),
        (run([0.5, float("nan")]), NotExamined),
        (run([0.5, 2.0], name="val_accuracy"), NotExamined),
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(forgotten_task, made)
    assert isinstance(verdict, kind), verdict


def test_says_when_it_began() -> None:
    (finding,) = said(forgotten_task, run([0.5, 0.5, 1.4, 2.0]))
    assert isinstance(finding, Finding)
    assert finding.onset == 66
    assert "was 0.5 before the first step and is 2 at the end" in finding.summary
