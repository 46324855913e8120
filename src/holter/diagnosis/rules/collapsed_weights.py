"""Weights shrink towards zero, and what they knew with them."""

from collections.abc import Iterator

from holter.diagnosis.causes import explained_by
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import WEIGHT_DECAY, WEIGHT_NORM

_HALF = 0.5  # of the first norm: weights that ought to learn have begun to vanish
_POOR = 0.3  # share of the loss that a training of some use has lost
_STRONG = 0.01  # of a weight that decay takes in one step, a hundred times what is usual
_VIOLENT = 0.1  # of a weight: what was learned ten steps ago is gone
_MOST = 0.9  # of the first norm, under which such weights are


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(WEIGHT_NORM,),
)
def collapsed_weights(facts: Facts, *, ratio: float = 0.1) -> Iterator[Verdict]:
    """Weights shrink towards zero, and what they knew with them.

    ## What it does
    Compares the norm of each weight matrix at the end with what it was at first. It speaks where
    the usual one (the median) has shrunk to under `ratio`, and the loss went badly; where weight
    decay times the learning rate takes a hundredth of each weight at each step or more, to under
    half, and a tenth or more, to under nine tenths: nothing stays for more than ten steps then.
    There a loss that fell by less than a third is a hint.

    ## Why it matters
    Weight decay pulls every weight to zero at each step. Where it is stronger than what the data
    says, the outputs become constant, and the loss ends at that of a constant answer.

    ## What to do
    Lower the weight decay: 0.01 to 0.1 is usual for AdamW, 1e-5 to 1e-3 for SGD and for Adam, whose
    penalty is added to the gradient. A penalty written into the loss acts the same way.

    ## When it is wrong
    Weights followed by a normalisation have no scale of their own and may shrink without harm; a
    training that is bad for another reason may have such weights. Pruning shrinks on purpose.

    ## How to confirm
    - Repeat 100 steps with `weight_decay=0`: the norms should stay, and the loss fall.
    - Print `p.norm()` of a few layers every 100 steps.
    """
    found = facts.weight_growth
    if found is None:
        yield collapsed_weights.not_examined("the norms of weights were not read often enough")
        return
    decay = facts.weight_decay
    strong = decay is not None and decay.rate > _STRONG
    violent = decay is not None and decay.rate > _VIOLENT
    if found.usual > (_MOST if violent else _HALF if strong else ratio):
        yield collapsed_weights.clear(f"the usual weight norm is {found.usual:.2g} times the first")
        return
    result = facts.outcome
    if result is None:
        yield collapsed_weights.not_examined(
            f"weights shrank to {found.usual:.1e}, but whether the loss fell cannot be told"
        )
        return
    if not result.bad and (not strong or result.fall > _POOR):
        yield collapsed_weights.clear(f"weights shrank to {found.usual:.1e}, but {result.says}")
        return
    yield collapsed_weights.finding(
        f"weights have collapsed: the usual norm is {found.usual:.1e} of what it was"
        + (f", under {decay.says}" if decay else "")
        + f"; {result.says}",
        confidence=Confidence.LIKELY if result.bad else Confidence.HINT,
        onset=found.crossing(_HALF if found.usual < _HALF else _MOST),
        evidence=(
            Evidence(WEIGHT_NORM, found.steps, found.says(found.smallest), found.smallest),
            *((Evidence(WEIGHT_DECAY, found.steps, decay.says),) if decay else ()),
            result.evidence,
        ),
        fix="lower the weight decay a hundredfold, or set it to 0 to see that it is the cause"
        if decay
        else "look for a penalty on the weights in the loss, or code that scales weights down",
        # an ordinary decay takes as much only where the learning rate is too high: that leads then
        explains=None
        if decay is not None and decay.ordinary
        else (*explained_by(collapsed_weights.name), "huge-updates"),
    )
