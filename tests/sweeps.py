"""Learning-rate range tests made by hand: a fall, an edge, short trainings."""

import numpy as np

from holter.rules._lr_range import RangeTest, Sweep, Trial

LADDER = np.geomspace(1e-7, 10, 100)
START = np.array([2.0, 2.1, 2.2, 2.3])


def falling(
    *,
    middle: float = 3e-3,
    edge: float = 0.1,
    scale: float = 1.0,
    offset: float = 0.0,
    seed: int = 0,
) -> Sweep:
    """A loss that has done half of its fall at `middle` and explodes from `edge` on."""
    level, places = float(START.mean()), np.log10(LADDER)
    fall = 1.2 / (1 + np.exp(-(places - np.log10(middle)) / 0.15))
    rise = 30 * np.maximum(places - np.log10(edge), 0) ** 2
    noise = 0.01 * np.random.default_rng(seed).normal(size=100) * fall
    kept = rise < 5
    held = (level - fall + rise + noise)[kept]
    return Sweep(
        LADDER[kept],
        scale * held + offset,
        scale * np.full(kept.sum(), 0.02),
        scale * level + offset,
    )


def range_test(**more: object) -> RangeTest:
    return RangeTest(START, tuple(falling(seed=seed) for seed in range(3)), **more)


def trained(**levels: float) -> tuple[Trial, ...]:
    """Short trainings by rate: `trained(a1e_3=1.2)` ended at 1.2 with 1e-3."""
    rates = {name[1:].replace("_", "-"): level for name, level in levels.items()}
    return tuple(
        Trial(f"confirm {rate}", float(rate), START - START.mean() + level)
        for rate, level in rates.items()
    )
