"""Most units of a layer are zero for every input."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Sample
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACTIVATION_DEAD_FRACTION


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(ACTIVATION_DEAD_FRACTION,),
)
def dead_units(
    facts: Facts,
    *,
    share: Annotated[float, "share of dead units in a layer"] = 0.7,
    whole: Annotated[float, "share from which the whole layer counts as dead"] = 0.95,
    revived: Annotated[float, "fall of the share that shows that units recover"] = 0.1,
    windows: Annotated[int, "last windows that all need this share"] = 2,
) -> Iterator[Verdict]:
    """Most units of a layer are zero for every input.

    ## What it does
    Measures, after each ReLU (module or function), the share of units that were zero for all
    samples of a window of several steps. It reports a share that is high at the end and does not
    fall, if the training failed. A completely dead layer is a hint even if the loss falls.

    ## Why it matters
    A unit that is zero for every input has no gradient, so it stays zero. If a whole layer dies,
    the layers before it stop learning and the output is constant.

    ## Example
    ```python
    nn.init.constant_(layer.bias, -8.0)   # bad
    nn.init.zeros_(layer.bias)            # good
    ```

    ## What to do
    Lower the learning rate or warm it up if units die during training. If they are dead from the
    first step, check the initialisation (negative biases, far too large weights) and the scale of
    the inputs. LeakyReLU and GELU cannot die.

    ## When it is wrong
    Large sparse networks work with many dead units. In a window with few samples, units that fire
    rarely count as dead.

    ## How to confirm
    - Count the units whose activation is zero over a whole validation pass.
    - Replace ReLU by LeakyReLU for 100 steps: the loss should begin to fall.
    """
    dead = facts.sample(ACTIVATION_DEAD_FRACTION)
    if not len(dead) or np.isfinite(dead.values).sum(axis=0).max() < windows:
        yield dead_units.not_examined(f"fewer than {windows} windows of a layer were recorded")
        return
    level, column = _worst(dead, windows, revived)
    if level < share:
        yield dead_units.clear(
            f"at most {percent(level)} of a layer's units stay dead"
            if level
            else "no layer has units that stay dead"
        )
        return
    owner = dead.owners[column]
    measured = f"{percent(level)} of the units of {owner} are dead"
    damage = damage_of(dead_units, facts, measured, regardless=level >= whole)
    if not isinstance(damage, Damage):
        yield damage
        return
    series = dead.values[:, column]
    at = np.flatnonzero(series >= share)
    first, last = int(dead.steps[at[0]]), int(dead.steps[at[-1]])
    others = int((np.nan_to_num(dead.values[at[-1]]) >= share).sum()) - 1
    sure = damage.confidence is Confidence.LIKELY and level >= whole
    yield dead_units.finding(
        f"{percent(level)} of the units of {owner}"
        + (f" (and {others} more)" if others > 0 else "")
        + f" are zero for every input since step {first}; {damage.says}",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        severity=Severity.ERROR if sure else Severity.WARNING,
        onset=first,
        evidence=(
            Evidence(
                ACTIVATION_DEAD_FRACTION,
                (int(dead.steps[0]), last),
                f"{percent(series[np.isfinite(series)][0])} in the first window,"
                f" {percent(level)} in the last {windows}",
                owner,
            ),
            *damage.evidence,
        ),
        explains=None if level >= whole else (),
        fix="replace `nn.ReLU()` by `nn.LeakyReLU()` or `nn.GELU()`; if the units died during"
        " training, lower the learning rate; if they are dead from the first step, check biases,"
        " initialisation and the scale of the inputs",
    )


def _worst(dead: Sample, windows: int, revived: float) -> tuple[float, int]:
    """Return the largest share that does not fall, and its column."""
    worst = 0.0, -1
    for column in range(len(dead.owners)):
        shares = dead.values[np.isfinite(dead.values[:, column]), column]
        if len(shares) >= windows and shares[-1] >= shares[:-1].max(initial=0) - revived:
            worst = max(worst, (float(shares[-windows:].min()), column))
    return worst
