"""Every step sees one of the same few batches."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.run import Run
from holter.signals import DATA_BATCHES, INPUT_FINGERPRINT

_FEW = 0.1  # share of the batches there are


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(INPUT_FINGERPRINT,),
    explains=(
        "overfitting",
        "validation-mismatch",
        "erratic-validation",
        "loss-accuracy-parting",
        "constant-validation",
    ),
)
def repeated_batches(run: Run, *, min_steps: int = 20) -> Iterator[Verdict]:
    """Every step sees one of the same few batches.

    ## What it does
    Each batch that the model is given leaves a fingerprint. Counts how many different ones there
    are among at least `min_steps` sampled steps, and speaks where they are fewer than a tenth of
    the batches that the loader has, and each has come back many times.

    ## Why it matters
    The model learns a handful of batches by heart and never sees the rest of the data. The training
    loss looks splendid.

    ## What to do
    Iterate over the loader: `for x, y in loader`. `next(iter(loader))` inside the loop begins anew
    each time; an index that is not advanced does the same.

    ## When it is wrong
    Overfitting one batch as a test is meant to do this. Training on the whole data at once, or
    without a loader, is not looked at.

    ## How to confirm
    - Print `x.sum()` for ten steps: different batches have different sums.
    """
    batches = _batches(run)
    for owner, prints in run[INPUT_FINGERPRINT].items():
        if len(prints) < min_steps:
            yield repeated_batches.not_examined(f"{len(prints)} of the {min_steps} steps needed")
            continue
        different = len(np.unique(prints.values))
        said = f"{owner} was given {different} different batches on {len(prints)} sampled steps"
        if batches is None:
            yield repeated_batches.not_examined(f"{said}; how many there are is unknown")
        elif different > _FEW * min(batches, len(prints)) or batches < 2:
            yield repeated_batches.clear(f"{said}; its loader has {batches}")
        else:
            yield repeated_batches.finding(
                f"{said}, though its loader has {batches}",
                confidence=Confidence.CERTAIN,
                onset=prints.first,
                evidence=(
                    Evidence(
                        INPUT_FINGERPRINT,
                        (prints.first, prints.last),
                        f"{different} different values among {len(prints)}",
                        owner,
                    ),
                ),
                fix="iterate over the loader, `for x, y in loader`, instead of beginning it anew",
            )


def _batches(run: Run) -> int | None:
    """How many batches the loader has that training draws from: the one that is drawn from most."""
    if DATA_BATCHES not in run:
        return None
    drawn = {owner: len(each) for owner, each in run[DATA_BATCHES].items() if len(each)}
    if not drawn:
        return None
    used = max(drawn, key=lambda owner: drawn[owner])
    for event in run.events:
        if event.kind == "loader" and event.data.get("loader") == used:
            batches = event.data.get("batches")
            return batches if isinstance(batches, int) else None
    return None
