import numpy as np

from holter.record import Run
from holter.record.signals import OVERFIT_CONSTANT, OVERFIT_FLOOR, OVERFIT_LOSS
from holter.reports._lines import painted
from holter.reports.experiments.overfit_batch import lines
from synthetic import run_of


def shown(run: Run) -> list[str]:
    return painted(lines(run, 96), color=False).splitlines()


def test_nothing_without_trials() -> None:
    assert lines(run_of({}), 96) == []


def test_one_line_a_trial_in_their_order() -> None:
    run = run_of(
        {
            OVERFIT_LOSS: {
                "unchanged": np.full(120, 2.0),
                "learning rate x 0.1": np.linspace(2.0, 1.5, 100),
                "dropout off": [2.0, 1.0, *[0.01] * 60],
                "clipping off": [2.0, np.nan],
            },
            OVERFIT_FLOOR: {"unchanged": [0.0]},
            OVERFIT_CONSTANT: {"unchanged": [2.0]},
        }
    )
    _, _, *rows = shown(run)
    assert [row.split("  ")[1] for row in rows] == list(run[OVERFIT_LOSS])
    ends = ["does not fit", "still falls", "fits", "not finite"]
    assert all(row.endswith(end) for row, end in zip(rows, ends, strict=True))
