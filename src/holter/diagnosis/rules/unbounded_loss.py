"""The negative of a loss is minimised."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import Curve, growth
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LOSS_ROOT_SHARE, OUTPUT_SIZE, WEIGHT_TOTAL_NORM, Signal

_MOST = 0.9  # share of steps
_EXACT = 0.01  # of the usual share: a sum with another loss changes from step to step
_FAR = 1000.0  # times its first size that a loss is under zero
_GROWN = 10.0  # times that outputs or weights have grown with it
_WORDS = {OUTPUT_SIZE: "outputs", WEIGHT_TOTAL_NORM: "weights"}
_WITHOUT_A_FLOOR = ("nll_loss", "gaussian_nll_loss", "poisson_nll_loss", "kl_div")


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS,),
)
def unbounded_loss(facts: Facts, *, min_steps: int = 5) -> Iterator[Verdict]:
    """The negative of a loss is minimised.

    ## What it does
    Compares what `backward()` is called on with what the loss function returned. It speaks where
    the one is the negative of the other, or the same negative part of it, on at least `min_steps`
    sampled steps, for loss functions that cannot go under zero, and only one optimizer is at work.
    Else it looks for a loss that has gone a thousand times as far under zero as it was large at
    first, with outputs or weights that have grown tenfold: that is likely.

    ## Why it matters
    Going down on the negative of a loss makes predictions worse, for as long as one likes: the
    number falls, which looks like progress, and has no floor.

    ## What to do
    Call `backward()` on the loss itself. To maximise a likelihood, minimise its negative once.

    ## When it is wrong
    Adversarial training, which climbs on purpose, mostly has an optimizer for each side and is left
    out. Unlearning climbs on purpose, too. Log-likelihoods of densities go under zero, but not
    that far.

    ## How to confirm
    - Look at predictions, or at the accuracy: it falls under that of guessing.
    """
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield unbounded_loss.not_examined(curve)
        return
    if len(facts.run.meta.optimizers) > 1:
        yield unbounded_loss.not_examined("several optimizers are at work: one may climb")
        return
    shares = readings(facts, LOSS_ROOT_SHARE, "")
    if len(curve) < min_steps:
        yield unbounded_loss.not_examined(f"{len(curve)} of the {min_steps} losses needed")
        return
    usual = float(np.median(shares)) if len(shares) >= min_steps else 1.0
    same = float(np.mean(np.abs(shares - usual) <= _EXACT * abs(usual))) if len(shares) else 0.0
    now, first = _levels(curve)
    went = f"the loss went from {first:.3g} to {now:.3g}"
    seen = Evidence(LOSS, curve.span, went, curve.owner)
    if usual < 0 and same >= _MOST and facts.loss_function not in _WITHOUT_A_FLOOR:
        series = facts.run[LOSS_ROOT_SHARE][""]
        span = (series.first, series.last)
        yield unbounded_loss.finding(
            f"backward is called on {usual:.3g} times what the loss function returned: training"
            " makes the predictions worse",
            confidence=Confidence.CERTAIN,
            onset=series.first,
            evidence=(Evidence(LOSS_ROOT_SHARE, span, f"median {usual:.3g}"), seen),
            fix="take the minus sign away: call backward on the loss itself",
        )
    elif now < -_FAR * abs(first) and (grown := _grown(facts, curve)) is not None:
        far = curve.values < -_FAR * abs(first)
        yield unbounded_loss.finding(
            f"{went}: it has no floor, and {_WORDS[grown]} grow with it",
            confidence=Confidence.LIKELY,
            onset=int(curve.steps[int(far.argmax())]),
            evidence=(seen,),
            fix="look for a term with the wrong sign: what is minimised has to have a floor",
        )
    elif len(shares) >= min_steps and usual > 0:
        yield unbounded_loss.clear(
            f"backward is called on {usual:.3g} times what the loss function returned; {went}"
        )
    else:
        yield unbounded_loss.clear(went)


def _levels(curve: Curve) -> tuple[float, float]:
    """The loss at last, and the one that was furthest from zero at first."""
    early = curve.values[:10]
    first = float(early[np.abs(early).argmax()])
    return float(np.median(curve.part(0.75))), first


def _grown(facts: Facts, curve: Curve) -> Signal | None:
    """Which of outputs and weights has grown tenfold since the beginning."""
    first, last = curve.span
    half = (first + last) // 2
    for signal in _WORDS:
        for owner, series in facts.run[signal].items() if signal in facts.run else ():
            start = series.first if len(series) else 0
            times = growth(facts, signal, owner, (start, start + 2), (half, last))
            if times is not None and times > _GROWN:
                return signal
    return None
