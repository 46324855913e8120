"""Weight decay shrinks the gains of normalisation layers."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LR, WEIGHT_DECAY, WEIGHT_NORM

_FEWEST = 10  # sampled norms


@exception
def group_without_decay(facts: Facts, measured: str) -> str | None:
    """The script already has a parameter group without weight decay for gains."""
    for group, decay in facts.run[WEIGHT_DECAY].items():
        if len(decay) and float(np.nanmax(decay.values)) <= 0:
            return f"{measured}; {group} has no weight decay"
    return None


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(WEIGHT_DECAY, WEIGHT_NORM, LR),
    preview=True,
    exceptions=(group_without_decay,),
)
def decayed_norms_and_biases(
    facts: Facts,
    *,
    shrunk: Annotated[float, "share of its initial norm that is left of a gain"] = 0.5,
    min_part: Annotated[float, "part of the shrinking, as a logarithm, due to decay"] = 0.5,
) -> Iterator[Verdict]:
    """Weight decay shrinks the gains of normalisation layers.

    ## What it does
    Looks at vectors named `weight`: the gains of normalisation layers, which start at 1. It reports
    a median gain that shrank, if learning rate times weight decay, summed over the run, explains
    much of that.

    ## Why it matters
    Decay of gains and biases does not regularise: it scales signals towards zero, layer after
    layer, and later layers have to compensate.

    ## Example
    ```python
    AdamW(model.parameters(), weight_decay=0.1)                                       # bad
    AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0}], lr=1e-3)    # good
    ```

    ## What to do
    Put parameters with one dimension (gains and biases) into a group with `weight_decay=0`.

    ## When it is wrong
    Many recipes decay all parameters and work well: the finding is always a hint.

    ## How to confirm
    - Print the mean of a gain before and after training, with and without decay.
    """
    shapes = facts.run.meta.parameters
    gains = [name for name, (shape, _) in shapes.items() if _is_gain(name, shape)]
    if not gains:
        yield decayed_norms_and_biases.clear("the model has no gains of normalisation layers")
        return
    norms = facts.sample(WEIGHT_NORM, gains)
    if len(norms) < _FEWEST:
        yield decayed_norms_and_biases.not_examined(f"{len(norms)} of the {_FEWEST} norms needed")
        return
    span = int(norms.steps[0]), int(norms.steps[-1])
    initial, final = norms.values[0], norms.between(0.9, 1).medians()
    usable = (initial > 0) & np.isfinite(final)  # gains of a residual branch may start at zero
    if not usable.any():
        yield decayed_norms_and_biases.not_examined("the gains start at zero, or are not finite")
        return
    shares = final[usable] / initial[usable]
    left, (pull, decay) = float(np.median(shares)), _pull(facts, *span)
    measured = (
        f"the median gain has {percent(left)} of its initial norm; learning rate times weight decay"
        f" alone leaves {percent(np.exp(-pull))}"
    )
    if left >= shrunk or pull < -np.log(max(left, 1e-9)) * min_part:
        yield decayed_norms_and_biases.clear(measured)
        return
    excuse = decayed_norms_and_biases.excused(facts, measured)
    if excuse is not None:
        yield excuse
        return
    worst = np.array(norms.owners)[usable][int(shares.argmin())]
    yield decayed_norms_and_biases.finding(
        measured,
        confidence=Confidence.HINT,
        onset=span[0],
        evidence=(
            Evidence(
                WEIGHT_NORM,
                span,
                f"median over {len(shares)} gains: {percent(left)} of the initial norm",
                str(worst),
            ),
            Evidence(WEIGHT_DECAY, (0, facts.run.steps - 1), f"weight decay {decay:.3g}"),
        ),
        fix="put gains and biases into a separate parameter group:"
        ' `{"params": vectors, "weight_decay": 0}`',
    )


def _pull(facts: Facts, first: int, last: int) -> tuple[float, float]:
    """Return learning rate times weight decay, summed over steps, and the decay; largest group."""
    pulls = [(0.0, 0.0)]
    for owner, rate in facts.run[LR].items():
        decays = facts.run[WEIGHT_DECAY].get(owner)
        if decays is not None and len(decays) and len(rate):
            inside = rate.values[(rate.steps >= first) & (rate.steps <= last)]
            mean = float(np.nanmean(inside)) if len(inside) else 0.0
            decay = float(np.nanmean(decays.values))
            pulls.append((mean * decay * (last - first), decay))
    return max(pulls)


def _is_gain(name: str, shape: Sequence[int]) -> bool:
    return len(shape) == 1 and prod(shape) > 1 and name.endswith("weight")
