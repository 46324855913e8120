"""Activations grow towards the float16 maximum."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.windows import recent
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, some
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
    facts: Facts,
    *,
    min_samples: Annotated[int, "sampled steps needed"] = 12,
    max_share: Annotated[float, "share of the largest float16 that may be reached"] = 0.25,
    min_growth: Annotated[
        float, "times by which activations grow between first and last third"
    ] = 1.5,
) -> Iterator[Verdict]:
    """Activations grow towards the float16 maximum.

    ## What it does
    In runs with GradScaler, compares the largest activation of each module in the first and last
    third of the sampled steps with 65,504, the largest float16. A module with finite values above
    that does not run in float16 and is excluded.

    ## Why it matters
    Beyond 65,504 a float16 value becomes infinite, the step is skipped and the loss scale falls; if
    the loss itself overflows, no scale helps.

    ## Example
    ```python
    with torch.autocast("cuda", dtype=torch.float16):   # bad
    with torch.autocast("cuda", dtype=torch.bfloat16):  # good
    ```

    ## What to do
    Use bfloat16. Or keep the named modules in float32, add a normalisation before them, or find the
    cause of the growth.

    ## When it is wrong
    Modules that run in float32 or bfloat16 inside a run with GradScaler, and values that level
    off below the limit.

    ## How to confirm
    - Print the dtype and the largest absolute value of the named module's output over time.
    """
    rows = recent(facts, ACTIVATION_ABSMAX, _READ)
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
        yield overflow_headroom.not_examined("no module ran in float16")
        return
    first = np.nanmedian(values[:third, fits], axis=0)
    last = np.nanmedian(values[-third:, fits], axis=0)
    near = last > max_share * _LARGEST
    growing = near & (last > min_growth * first)
    top = int(last.argmax())
    largest = (
        f"{rows.owners[fits[top]]} reaches {last[top]:.3g}, {last[top] / _LARGEST:.2g} times the"
        " largest float16"
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
        f"the largest activation of {some(owners)} grew from {first[worst]:.3g} to"
        f" {last[worst]:.3g}, {percent(last[worst] / _LARGEST)} of the largest float16 (65,504)",
        confidence=Confidence.HINT,
        onset=int(rows.steps[passed.argmax()]),
        evidence=(
            Evidence(ACTIVATION_ABSMAX, window, f"{first[worst]:.3g} to {last[worst]:.3g}", name),
        ),
        fix=f'use `torch.autocast("cuda", dtype=torch.bfloat16)`, or keep {name} in float32',
    )
