"""The negative log-likelihood does not receive log-probabilities."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.handwritten import loss_name
from holter.diagnosis.facts.outputs import of_finite_outputs
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent, portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    LOSS,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
    TARGET_COUNT,
)


@exception
def densities(function: str, normaliser: Values) -> str | None:
    """Log-densities of the inputs sum to less than 1 over the classes and are bounded."""
    if np.median(normaliser) > 0:
        return None
    return (
        f"exponentials of the input of {function} sum to less than 1 over the classes (median"
        f" log-sum-exp {np.median(normaliser):.3g}), like log-densities of the inputs"
    )


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_LOG_PROBABILITY_FRACTION, OUTPUT_LOG_NORMALISER),
    exceptions=(densities,),
)
def unnormalised_nll(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 3,
    tolerance: Annotated[float, "log of the sum over classes that rounding may leave"] = 0.1,
    all_samples: Annotated[float, "share of samples that is all of them, but rounding"] = 0.99,
    some_samples: Annotated[float, "share of samples that is one of several heads"] = 0.2,
    far: Annotated[float, "fall below zero, in units of the loss of a uniform guess"] = 3.0,
) -> Iterator[Verdict]:
    """The negative log-likelihood does not receive log-probabilities.

    ## What it does
    Checks the input of `F.nll_loss` (`nn.NLLLoss`), and reports exponentials that do not sum to 1
    over the classes. It is certain for probabilities, likely for a softmax over the samples and for
    logits whose loss falls without bound, and a hint for other logits or some of several heads.

    ## Why it matters
    This loss only negates the value of the target class. For probabilities it ranges from -1 to 0
    with the wrong gradients; for logits it falls without bound, because the other classes are not
    pushed down.

    ## Example
    ```python
    loss = F.nll_loss(logits.softmax(1), y)       # bad
    loss = F.nll_loss(logits.log_softmax(1), y)   # good
    ```

    ## What to do
    End the model in `log_softmax` over the classes (`dim=1`), or pass its logits to
    `nn.CrossEntropyLoss`.

    ## When it is wrong
    Log-likelihoods multiplied by rewards, or deliberately normalised over something other than the
    classes.

    ## How to confirm
    - Print `output.exp().sum(1)` before the loss: it must be 1 for every sample.
    """
    for function in facts.run[OUTPUT_LOG_PROBABILITY_FRACTION]:
        share = of_finite_outputs(facts, OUTPUT_LOG_PROBABILITY_FRACTION, function)
        normaliser = readings(facts, OUTPUT_LOG_NORMALISER, function)
        if function != "nll_loss" or not len(share) or not len(normaliser):
            continue
        name = loss_name(facts, function)
        most, excess = float(share.values.max()), float(np.median(normaliser))
        if most >= all_samples or abs(excess) < tolerance:
            yield unnormalised_nll.clear(
                f"{name} receives log-probabilities for {percent(most)} of the samples; their"
                f" log-sum-exp is {excess:.2g}"
            )
            continue
        if len(share) < min_steps:
            yield unnormalised_nll.not_examined(f"{len(share)} of the {min_steps} steps needed")
            continue
        span = (share.first, share.last)
        over_samples = most <= some_samples and _over_samples(
            facts, function, normaliser, tolerance
        )
        excuse = None if over_samples else unnormalised_nll.excused(function, normaliser)
        if over_samples:
            yield unnormalised_nll.finding(
                f"{name} receives log-probabilities that are normalised over the samples instead"
                " of the classes: their log-sum-exp over the classes started at"
                f" {normaliser[0]:.3g}",
                confidence=Confidence.LIKELY,
                onset=share.first,
                evidence=(
                    Evidence(
                        OUTPUT_LOG_NORMALISER,
                        span,
                        f"{normaliser[0]:.3g} initially, the log of classes over samples",
                        function,
                    ),
                ),
                fix="apply the softmax over the classes: `log_softmax(x, dim=1)`",
            )
        elif excuse is not None:
            yield excuse
        else:
            simplex = of_finite_outputs(facts, OUTPUT_PROBABILITY_FRACTION, function).values
            given, confidence = "logits", Confidence.HINT
            if len(simplex) and float(simplex.min()) > all_samples:
                given, confidence = "probabilities", Confidence.CERTAIN
            elif most <= some_samples and _fell_without_end(facts, function, far):
                confidence = Confidence.LIKELY
            yield unnormalised_nll.finding(
                f"{name} receives {given} instead of log-probabilities: their log-sum-exp is"
                f" {excess:.3g} instead of 0",
                confidence=confidence,
                onset=share.first,
                evidence=(
                    Evidence(
                        OUTPUT_LOG_PROBABILITY_FRACTION,
                        span,
                        f"at most {portion(most)} of the samples of any of {len(share)} steps"
                        if most
                        else f"none of the samples of {len(share)} steps",
                        function,
                    ),
                    Evidence(OUTPUT_LOG_NORMALISER, span, f"median {excess:.3g}", function),
                ),
                fix="end the model in `log_softmax`, or pass its logits to `F.cross_entropy`",
            )


def _over_samples(facts: Facts, function: str, normaliser: Values, tolerance: float) -> bool:
    """Return whether the first sum is that of a softmax over a batch of similar outputs."""
    classes, counts = last(facts, OUTPUT_UNITS, function), readings(facts, TARGET_COUNT, function)
    if classes is None or not len(counts):
        return False
    expected = float(np.log(classes / max(counts[0], 1.0)))
    difference = abs(float(normaliser[0]) - expected)
    return abs(expected) > tolerance and difference < tolerance * abs(expected)


def _fell_without_end(facts: Facts, function: str, far: float) -> bool:
    """Return whether the loss ended non-finite, or further below zero than a likelihood can be."""
    guess = np.log(max(last(facts, OUTPUT_UNITS, function) or 0, 2))
    for loss in facts.run[LOSS].values() if LOSS in facts.run else ():
        end = loss.values[-max(len(loss) // 4, 1) :]
        nonfinite = not np.isfinite(end).all()
        if len(end) and (nonfinite or np.quantile(end, 0.9) < -far * guess):
            return True
    return False
