"""The negative log-likelihood is not given logarithms of probabilities."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.outputs import of_finite_outputs
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    LOSS,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
    TARGET_COUNT,
)

_ALL = 0.99  # share of samples: rounding may spoil a few
_SOME = 0.2  # share of samples: one of several heads
_FAR = 3.0  # times what guessing costs, that a loss without end has fallen under zero
_ROUNDED = 0.1  # of log Z: what a small number inside the logarithm may add


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_LOG_PROBABILITY_FRACTION, OUTPUT_LOG_NORMALISER),
)
def unnormalised_nll(facts: Facts, *, min_steps: int = 3) -> Iterator[Verdict]:
    """The negative log-likelihood is not given logarithms of probabilities.

    ## What it does
    Looks at what `F.nll_loss` (`nn.NLLLoss`) is given: the exponentials over the classes have to
    add up to 1. It speaks where they do not, on all of at least `min_steps` sampled steps, and add
    up to more than 1. It is certain where the numbers are probabilities. Where they are not they
    are plain logits: that is likely once the loss has fallen under zero by three times what
    guessing costs, as no likelihood does, and a hint before. A softmax over the samples instead of
    the classes is told by a first sum of classes over samples, above or under 1, and is likely.
    Steps with predictions that are not finite are left out.

    ## Why it matters
    This loss only picks out the number of the right class and turns its sign. Given probabilities
    it runs from -1 to 0 with the wrong gradients; given logits it falls without end, and nothing
    holds the other classes down.

    ## What to do
    End the model in `log_softmax` over the classes (`dim=1`), or give its logits to
    `nn.CrossEntropyLoss`.

    ## When it is wrong
    Log-likelihoods that are normalised over something else than the classes, such as densities of
    the input for each class, or that are multiplied by rewards. Where their sum is under 1 this
    rule is silent.

    ## How to confirm
    - Print `output.exp().sum(1)` before the loss: it has to be 1 for every sample.
    """
    for owner in facts.run[OUTPUT_LOG_PROBABILITY_FRACTION]:
        share = of_finite_outputs(facts, OUTPUT_LOG_PROBABILITY_FRACTION, owner)
        if owner != "nll_loss" or not len(share):
            continue
        most = float(share.values.max())
        normaliser = readings(facts, OUTPUT_LOG_NORMALISER, owner)
        excess = float(np.median(normaliser)) if len(normaliser) else 0.0
        if most <= _SOME and len(share) >= min_steps and _over_samples(facts, owner, normaliser):
            yield unnormalised_nll.finding(
                f"{owner} is given logarithms that add up to 1 over the samples, not over the"
                f" classes: the log of their sum over the classes began at {normaliser[0]:.3g}",
                confidence=Confidence.LIKELY,
                onset=share.first,
                evidence=(
                    Evidence(
                        OUTPUT_LOG_NORMALISER,
                        (share.first, share.last),
                        f"{normaliser[0]:.3g} at first, the log of classes over samples",
                        owner,
                    ),
                ),
                fix="take the softmax over the classes: log_softmax(x, dim=1)",
            )
        elif most > _SOME or excess < _ROUNDED:
            yield unnormalised_nll.clear(
                f"{owner} is given logarithms of probabilities for {most:.0%} of the samples; the"
                f" log of their sum is {excess:.2g}"
            )
        elif len(share) < min_steps:
            yield unnormalised_nll.not_examined(f"{len(share)} of the {min_steps} steps needed")
        else:
            simplex = of_finite_outputs(facts, OUTPUT_PROBABILITY_FRACTION, owner).values
            probabilities = bool(len(simplex)) and float(simplex.min()) > _ALL
            given = "probabilities" if probabilities else "plain logits"
            sure = Confidence.LIKELY if _ran_away(facts, owner) else Confidence.HINT
            span = (share.first, share.last)
            yield unnormalised_nll.finding(
                f"{owner} is given {given} instead of logarithms of probabilities: the log of the"
                f" sum of their exponentials is {excess:.3g} instead of 0",
                confidence=Confidence.CERTAIN if probabilities else sure,
                onset=share.first,
                evidence=(
                    Evidence(
                        OUTPUT_LOG_PROBABILITY_FRACTION,
                        span,
                        f"at most {most:.0%} of the samples of any of {len(share)} steps",
                        owner,
                    ),
                    Evidence(OUTPUT_LOG_NORMALISER, span, f"median {excess:.3g}", owner),
                ),
                fix="end the model in log_softmax, or give its logits to cross-entropy",
            )


def _over_samples(facts: Facts, function: str, normaliser: Values) -> bool:
    """Whether the first sums are those of a softmax over the batch, of outputs all alike."""
    classes, counts = last(facts, OUTPUT_UNITS, function), readings(facts, TARGET_COUNT, function)
    if classes is None or not len(counts) or not len(normaliser):
        return False
    expected = float(np.log(classes / max(counts[0], 1.0)))
    return abs(expected) > _ROUNDED and abs(float(normaliser[0]) - expected) < _ROUNDED * abs(
        expected
    )


def _ran_away(facts: Facts, function: str) -> bool:
    """Whether the loss is under zero for good, or lost, by more than any likelihood could be."""
    classes = last(facts, OUTPUT_UNITS, function)
    for loss in facts.run[LOSS].values() if LOSS in facts.run else ():
        end = loss.values[-max(len(loss) // 4, 1) :]
        lost = not np.isfinite(end).all()
        if len(end) and (lost or np.quantile(end, 0.9) < -_FAR * np.log(max(classes or 0, 2))):
            return True
    return False
