"""Weight decay shrinks the gains of normalising layers."""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LR, WEIGHT_DECAY, WEIGHT_NORM

_FEWEST = 10  # sampled norms


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(WEIGHT_DECAY, WEIGHT_NORM, LR),
    preview=True,
)
def decayed_norms_and_biases(facts: Facts, *, shrunk: float = 0.5) -> Iterator[Verdict]:
    """Weight decay shrinks the gains of normalising layers.

    ## What it does
    Looks at vectors named `weight`, which are the gains of normalising layers and begin at one. It
    speaks where the usual one has shrunk under `shrunk` of its first norm, and the learning rate
    times the weight decay, added up over the run, is enough to explain at least half of that. Where
    some group has no weight decay, gains are taken to be in it.

    ## Why it matters
    Decay on gains and biases does not regularise: it pulls signals to zero, layer after layer, and
    the layers after have to make up for it.

    ## What to do
    Put parameters of one dimension (gains and biases) into a group with `weight_decay=0`.

    ## When it is wrong
    Gains may shrink for good reasons, and many recipes decay everything and do well: this is a
    hint, never more.

    ## How to confirm
    - Print the mean of a gain before and after training, with the decay on and off.
    """
    shapes = facts.run.meta.parameters
    gains = [name for name, (shape, _) in shapes.items() if _is_gain(name, shape)]
    decays = [
        float(np.nanmax(each.values)) for each in facts.run[WEIGHT_DECAY].values() if len(each)
    ]
    if not gains or not decays or min(decays) <= 0:
        yield decayed_norms_and_biases.clear(
            "there are no gains" if not gains else "a group of parameters is not decayed"
        )
        return
    norms = facts.sample(WEIGHT_NORM, gains)
    if len(norms) < _FEWEST:
        yield decayed_norms_and_biases.not_examined(f"{len(norms)} of the {_FEWEST} norms needed")
        return
    begin, end = norms.values[0], norms.between(0.9, 1).medians()
    known = (begin > 0) & np.isfinite(end)  # gains of a residual branch may begin at zero
    if not known.any():
        yield decayed_norms_and_biases.not_examined("the gains begin at zero, or are not finite")
        return
    shares = end[known] / begin[known]
    left, pull = float(np.median(shares)), _pull(facts, int(norms.steps[0]), int(norms.steps[-1]))
    said = (
        f"the usual gain has {left:.0%} of its first norm; learning rate times weight decay alone"
        f" would leave {np.exp(-pull):.0%}"
    )
    if left >= shrunk or pull < -np.log(max(left, 1e-9)) / 2:
        yield decayed_norms_and_biases.clear(said)
        return
    worst = np.array(norms.owners)[known][int(shares.argmin())]
    yield decayed_norms_and_biases.finding(
        said,
        confidence=Confidence.HINT,
        onset=int(norms.steps[0]),
        evidence=(
            Evidence(
                WEIGHT_NORM,
                (int(norms.steps[0]), int(norms.steps[-1])),
                f"median over {len(shares)} gains: {left:.2f} of the first norm",
                str(worst),
            ),
            Evidence(WEIGHT_DECAY, (0, facts.run.steps - 1), f"weight decay {max(decays):.3g}"),
        ),
        fix="give gains and biases a parameter group with weight_decay=0",
    )


def _pull(facts: Facts, first: int, last: int) -> float:
    """Learning rate times weight decay, added up over some steps; of the group with the most."""
    pulls = [0.0]
    for owner, rate in facts.run[LR].items():
        decay = facts.run[WEIGHT_DECAY].get(owner)
        if decay is not None and len(decay) and len(rate):
            inside = rate.values[(rate.steps >= first) & (rate.steps <= last)]
            mean = float(np.nanmean(inside)) if len(inside) else 0.0
            pulls.append(mean * float(np.nanmean(decay.values)) * (last - first))
    return max(pulls)


def _is_gain(name: str, shape: Sequence[int]) -> bool:
    return len(shape) == 1 and prod(shape) > 1 and name.endswith("weight")
