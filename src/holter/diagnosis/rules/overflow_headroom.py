"""Activations grow towards the largest number of float16."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACTIVATION_ABSMAX, AMP_SCALE

_LARGEST = 65504.0  # of float16
_READ = 2000  # steps, back from the last, that are looked at


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(ACTIVATION_ABSMAX, AMP_SCALE),
    preview=True,
)
def overflow_headroom(
    facts: Facts, *, min_samples: int = 12, max_share: float = 0.25, min_growth: float = 1.5
) -> Iterator[Verdict]:
    """Activations grow towards the largest number of float16.

    ## What it does
    In runs with a GradScaler, which go with float16, follows the largest activation of each module
    over at least `min_samples` sampled steps. It speaks where the last third reaches `max_share` of
    65504 and is `min_growth` times the first third. A module that was seen above 65504 and finite
    does not run in float16 and is left out.

    ## Why it matters
    float16 ends at 65504. What grows beyond becomes infinite, the step is skipped, the scale falls,
    and where the loss itself overflows no scale helps.

    ## What to do
    Use bfloat16. Or keep the named modules in float32, add a normalisation before them, or find out
    why they grow.

    ## When it is wrong
    Modules that run in float32 or bfloat16 inside a run with a GradScaler, and values that level
    off below the limit.

    ## How to confirm
    - Print the dtype and the largest absolute value of the named module's output over time.
    """
    rows = facts.run[ACTIVATION_ABSMAX].rows(facts.run.steps - _READ)
    values = np.where(rows.present, rows.values, np.nan).astype(np.float64)
    values[np.isinf(values)] = np.nan
    third = len(rows.steps) // 3
    if len(rows.steps) < min_samples:
        yield overflow_headroom.not_examined(
            f"{len(rows.steps)} of the {min_samples} sampled steps needed"
        )
        return
    columns = [
        column
        for column in range(len(rows.owners))
        if np.isfinite(values[:third, column]).any() and np.isfinite(values[-third:, column]).any()
    ]
    fits = [column for column in columns if np.nanmax(values[:, column]) <= _LARGEST]
    if not fits:
        yield overflow_headroom.not_examined("no module was seen to run in float16")
        return
    first = np.nanmedian(values[:third, fits], axis=0)
    last = np.nanmedian(values[-third:, fits], axis=0)
    near = last > max_share * _LARGEST
    growing = near & (last > min_growth * first)
    top = int(last.argmax())
    largest = (
        f"{rows.owners[fits[top]]} reaches {last[top]:.3g}, {last[top] / _LARGEST:.1%} of what"
        " float16 holds"
    )
    if not growing.any():
        if near.any():
            yield overflow_headroom.normal(f"{largest}; it does not grow")
        yield overflow_headroom.clear(largest)
        return
    owners = [rows.owners[fits[index]] for index in np.flatnonzero(growing)]
    worst = int(np.where(growing, last, 0).argmax())
    name, window = rows.owners[fits[worst]], (int(rows.steps[0]), int(rows.steps[-1]))
    passed = values[:, fits[worst]] > max_share * _LARGEST
    yield overflow_headroom.finding(
        f"the largest activation of {some(owners)} grows towards the limit of float16: from"
        f" {first[worst]:.3g} to {last[worst]:.3g}, {last[worst] / _LARGEST:.0%} of 65504",
        confidence=Confidence.HINT,
        onset=int(rows.steps[passed.argmax()]),
        evidence=(
            Evidence(ACTIVATION_ABSMAX, window, f"{first[worst]:.3g} to {last[worst]:.3g}", name),
        ),
        fix=f"use bfloat16, or keep {name} in float32",
    )
