"""What is shown of fits of a few samples."""

import numpy as np
from tabled import shown, table

from holter.record.signals import OVERFIT_CONSTANT, OVERFIT_FLOOR, OVERFIT_LOSS
from synthetic import run_of


def test_one_row_per_fit_in_their_order() -> None:
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
    fits = table(run, "fit of a few samples")
    assert [row[0] for row in fits.rows] == list(run[OVERFIT_LOSS])
    assert [row[-1] for row in fits.rows] == ["does not fit", "still falls", "fits", "not finite"]
    assert fits.rows[2][1:4] == (2.0, np.float32(0.01), 100)
    assert "dropout off" in shown(run)
