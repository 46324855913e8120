"""Most units of a layer are zero for every input."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACTIVATION_DEAD_FRACTION

_WINDOWS = 2  # in which the same share has to be dead
_WHOLE = 0.95  # share from which on a layer is as good as gone
_REVIVING = 0.1  # fall of the share that says that units come back


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(ACTIVATION_DEAD_FRACTION,),
)
def dead_units(facts: Facts, *, share: float = 0.7) -> Iterator[Verdict]:
    """Most units of a layer are zero for every input.

    ## What it does
    Reads, for each ReLU and its like, the share of units that were zero for all samples of a
    window of several steps. It speaks where the last windows of a layer all have at least `share`,
    the share does not fall, and the loss went badly: likely where the layer is as good as gone
    (95 %), else a hint. A layer that is gone while the loss falls is a hint too, for other paths
    may do its work. Zeros of single samples are what a ReLU does, and never count.

    ## Why it matters
    A unit that is zero for every input has no gradient, so it stays so. If a whole layer dies,
    nothing before it learns any more and the output is constant.

    ## What to do
    Lower the learning rate or warm it up if units die during training. If they are dead from the
    first step, look at the initialisation (negative biases, far too large weights) and the scale
    of the inputs. LeakyReLU and GELU cannot die.

    ## When it is wrong
    Large sparse networks work with many dead units. A window of few samples calls rare units dead.
    `F.relu` is a function and is not seen.

    ## How to confirm
    - Count the units whose activation is zero over a whole validation pass.
    - Replace ReLU by LeakyReLU for 100 steps: the loss should begin to fall.
    """
    dead = facts.sample(ACTIVATION_DEAD_FRACTION)
    worst: tuple[float, int] = (0.0, -1)
    for column in range(len(dead.owners)):
        values = dead.values[:, column]
        values = values[np.isfinite(values)]
        if len(values) >= _WINDOWS and values[-1] >= values[:-1].max() - _REVIVING:
            worst = max(worst, (float(values[-_WINDOWS:].min()), column))
    if not len(dead) or np.isfinite(dead.values).sum(axis=0).max() < _WINDOWS:
        yield dead_units.not_examined(f"it takes {_WINDOWS} windows of samples of one layer")
        return
    level, column = worst
    result = facts.outcome
    bad = result is not None and result.bad
    if level < share or (level < _WHOLE and not bad):
        went = f"; {result.says}" if result is not None and level >= share else ""
        yield dead_units.clear(f"at most {level:.0%} of a layer's units are dead for good{went}")
        return
    owner, series = dead.owners[column], dead.values[:, column]
    at = np.flatnonzero(series >= share)
    first, last = int(dead.steps[at[0]]), int(dead.steps[at[-1]])
    others = int((np.nan_to_num(dead.values[at[-1]]) >= share).sum()) - 1
    more = f" (and of {others} more layers)" if others > 0 else ""
    yield dead_units.finding(
        f"{level:.0%} of the units of {owner}{more} are zero for every input since step {first}"
        + (f", and {result.says}" if result is not None and bad else ""),
        confidence=Confidence.LIKELY if bad and level >= _WHOLE else Confidence.HINT,
        severity=Severity.ERROR if bad and level >= _WHOLE else Severity.WARNING,
        onset=first,
        evidence=(
            Evidence(
                ACTIVATION_DEAD_FRACTION,
                (int(dead.steps[0]), last),
                f"{series[np.isfinite(series)][0]:.0%} in the first window, {level:.0%} in the last"
                f" {_WINDOWS}",
                owner,
            ),
            *((result.evidence,) if result is not None and bad else ()),
        ),
        explains=None if level >= _WHOLE else (),
        fix="use LeakyReLU or GELU; if the units die while training, lower the learning rate, if"
        " they are dead at once, look at biases, initialisation and the scale of the inputs",
    )
