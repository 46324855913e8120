"""Weight decay shrinks the gains of normalising layers."""

from collections.abc import Iterator
from math import prod

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._layers import sample
from holter.rules._schedule import rates
from holter.run import Run
from holter.signals import LR, WEIGHT_DECAY, WEIGHT_NORM

_FEWEST = 10  # sampled norms


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(WEIGHT_DECAY, WEIGHT_NORM, LR),
    explains=("loss-plateau", "underfitting"),
)
def decayed_norms_and_biases(run: Run, *, shrunk: float = 0.5) -> Iterator[Verdict]:
    """Weight decay shrinks the gains of normalising layers.

    ## What it does
    Looks at vectors named `weight`, which are the gains of normalising layers and begin at one. It
    speaks where the usual one has shrunk under `shrunk` of its first norm, and the learning rate
    times the weight decay, added up over the run, is enough to explain at least half of that.

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
    shapes = run.meta.get("parameters", {})
    gains = [n for n, (shape, _) in shapes.items() if _is_gain(n, shape)]
    decay = max(
        (float(each.values.max()) for each in run[WEIGHT_DECAY].values() if len(each)), default=0
    )
    if not gains or decay == 0:
        yield decayed_norms_and_biases.clear(
            "no gain is decayed" if gains else "there are no gains"
        )
        return
    norms = sample(run, WEIGHT_NORM, gains)
    if len(norms) < _FEWEST:
        yield decayed_norms_and_biases.not_examined(f"{len(norms)} of the {_FEWEST} norms needed")
        return
    begin, end = norms.values[0], norms.values[-1]
    left = float(
        np.nanmedian(np.divide(end, begin, out=np.full(len(end), np.nan), where=begin > 0))
    )
    pull = sum(float(np.mean(each.values)) * run.steps for each in rates(run)[:1]) * decay
    said = (
        f"the usual gain has {left:.0%} of its first norm; learning rate times decay explain"
        f" {np.exp(-pull):.0%}"
    )
    if left >= shrunk or np.exp(-pull) > np.sqrt(max(left, 1e-9)):
        yield decayed_norms_and_biases.clear(said)
        return
    worst = norms.owners[int(np.nanargmin(end / np.maximum(begin, 1e-30)))]
    yield decayed_norms_and_biases.finding(
        said,
        confidence=Confidence.HINT,
        onset=int(norms.steps[0]),
        evidence=(
            Evidence(
                WEIGHT_NORM,
                (int(norms.steps[0]), int(norms.steps[-1])),
                f"median over {len(gains)} gains: {left:.2f} of the first norm",
                worst,
            ),
            Evidence(WEIGHT_DECAY, (0, run.steps - 1), f"weight decay {decay:.3g}"),
        ),
        fix="give gains and biases a parameter group with weight_decay=0",
    )


def _is_gain(name: str, shape: list[int]) -> bool:
    return len(shape) == 1 and prod(shape) > 1 and name.endswith("weight")
