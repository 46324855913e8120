"""The negative log-likelihood is not given logarithms of probabilities."""

from collections.abc import Iterator

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import readings
from holter.run import Run
from holter.signals import (
    OUTPUT_LOG_NORMALISER,
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_PROBABILITY_FRACTION,
)

_ALL = 0.99  # share of samples: rounding may spoil a few


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_LOG_PROBABILITY_FRACTION,),
    explains=(
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "diverging-loss",
        "oscillating-loss",
        "loss-spike",
        "exploding-gradients",
        "exploding-weights",
        "nonfinite-loss",
        "nonfinite-gradient",
        "nonfinite-weights",
        "huge-updates",
        "validation-mismatch",
        "unbounded-loss",
        "loss-accuracy-parting",
    ),
)
def unnormalised_nll(run: Run, *, min_steps: int = 3) -> Iterator[Verdict]:
    """The negative log-likelihood is not given logarithms of probabilities.

    ## What it does
    Looks at what `F.nll_loss` (`nn.NLLLoss`) is given: the exponentials over the classes have to
    add up to 1. It speaks where they do not for nearly all samples, on all of at least `min_steps`
    sampled steps, and says whether the numbers are probabilities or plain logits.

    ## Why it matters
    This loss only picks out the number of the right class and turns its sign. Given probabilities
    it runs from -1 to 0 with the wrong gradients; given logits it falls without end, and nothing
    holds the other classes down.

    ## What to do
    End the model in `log_softmax`, or give its logits to `nn.CrossEntropyLoss`.

    ## When it is wrong
    Log-likelihoods that are normalised over something else than the classes, such as over time.

    ## How to confirm
    - Print `output.exp().sum(1)` before the loss: it has to be 1 for every sample.
    """
    for owner, share in run[OUTPUT_LOG_PROBABILITY_FRACTION].items():
        if owner != "nll_loss" or not len(share):
            continue
        most = float(share.values.max())
        if most > 1 - _ALL:
            yield unnormalised_nll.clear(
                f"{owner} is given logarithms of probabilities for {most:.0%} of the samples"
            )
        elif len(share) < min_steps:
            yield unnormalised_nll.not_examined(f"{len(share)} of the {min_steps} steps needed")
        else:
            plain = readings(run, OUTPUT_PROBABILITY_FRACTION, owner)
            probabilities = len(plain) and plain.min() > _ALL
            given = "probabilities" if probabilities else "plain logits"
            normaliser = readings(run, OUTPUT_LOG_NORMALISER, owner)
            off = f"; their log-sum is {normaliser[-1]:.3g} instead of 0" if len(normaliser) else ""
            yield unnormalised_nll.finding(
                f"{owner} is given {given} instead of logarithms of probabilities{off}",
                confidence=Confidence.CERTAIN,
                onset=share.first,
                evidence=(
                    Evidence(
                        OUTPUT_LOG_PROBABILITY_FRACTION,
                        (share.first, share.last),
                        f"at most {most:.0%} of the samples of any of {len(share)} steps",
                        owner,
                    ),
                ),
                fix="end the model in log_softmax, or give its logits to cross-entropy",
            )
