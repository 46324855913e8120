"""Learning-rate range tests made by hand: a fall, an edge, short trainings."""

import numpy as np

from holter.diagnosis.facts.rate_range import RangeTest, RateTrial
from holter.diagnosis.facts.sweep import Sweep
from holter.record import Event, Run
from holter.record.events import LrRangeNote, LrRangeStop, Occurrence
from holter.record.signals import (
    LR_RANGE_CONFIGURED,
    LR_RANGE_END,
    LR_RANGE_ERROR,
    LR_RANGE_HELD,
    LR_RANGE_MOVED,
    LR_RANGE_RATE,
    LR_RANGE_START,
)
from synthetic import run_of

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


def trained(**levels: float) -> tuple[RateTrial, ...]:
    """Short trainings by rate: `trained(a1e_3=1.2)` ended at 1.2 with 1e-3."""
    rates = {name[1:].replace("_", "-"): level for name, level in levels.items()}
    return tuple(
        RateTrial(f"confirm {rate}", float(rate), START - START.mean() + level)
        for rate, level in rates.items()
    )


# As short trainings end: best from 2e-3 to 4e-3, nothing at 1e-6, above the start from 0.1 on.
ENDS = {1e-6: 2.149, 3e-5: 2.1, 1e-3: 1.4, 2e-3: 1.2, 4e-3: 1.2, 8e-3: 1.4, 0.06: 2.1, 0.2: 4.0}


def run_with(
    peak: float,
    *,
    now: float | None = None,
    given: float | None = None,
    ends: dict[float, float] = ENDS,
    tried: bool = True,
    moved: float = 0.5,
    edge: float = 0.1,
    notes: tuple[str, ...] = (),
) -> Run:
    """A run of three sweeps and of short trainings, with a configured rate."""
    sweeps = [falling(edge=edge, seed=seed) for seed in range(3)]
    signals = {
        LR_RANGE_START: {"": START},
        LR_RANGE_CONFIGURED: {
            "peak": [peak],
            "now": [peak if now is None else now],
            "given": [peak if given is None else given],
        },
        LR_RANGE_RATE: {f"sweep {n}": each.rates for n, each in enumerate(sweeps)},
        LR_RANGE_HELD: {f"sweep {n}": each.held for n, each in enumerate(sweeps)},
        LR_RANGE_ERROR: {f"sweep {n}": each.errors for n, each in enumerate(sweeps)},
        LR_RANGE_MOVED: {f"sweep {n}": [moved] for n in range(3)},
    }
    if tried:
        rates = [rate for rate in ends if 1e-3 <= rate <= 8e-3 or rate == peak]
        signals[LR_RANGE_RATE] |= {f"confirm {rate:g}": [rate] * 10 for rate in rates}
        tilt = 0.01 * np.array([-1, 1, -1, 1])  # held batches do not gain alike
        signals[LR_RANGE_END] = {
            f"confirm {rate:g}": START - START.mean() + ends[rate] + tilt for rate in rates
        }
    noted: list[Event[Occurrence]] = [Event(0, 0.0, LrRangeNote(each)) for each in notes]
    for number, each in enumerate(sweeps):
        stop = LrRangeStop(f"sweep {number}", "diverged", float(each.rates[-1]))
        noted.append(Event(0, 0.0, stop))
    return run_of(signals, events=noted)
