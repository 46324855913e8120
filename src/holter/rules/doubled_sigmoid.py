"""A loss on logits is given probabilities, and applies a second sigmoid."""

from collections.abc import Iterator

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import last, readings
from holter.run import Run
from holter.signals import OUTPUT_MAX, OUTPUT_MIN, OUTPUT_PROBABILITY_FRACTION, TARGET_ENTROPY

_ONE_KIND = 0.01  # nats under which labels are practically all the same
_SURE = 50  # sampled steps after which chance is out of the question


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_PROBABILITY_FRACTION,),
    explains=(
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "tiny-updates",
        "vanishing-gradients",
        "validation-mismatch",
        "loss-accuracy-parting",
    ),
)
def doubled_sigmoid(run: Run, *, min_steps: int = 20) -> Iterator[Verdict]:
    """A loss on logits is given probabilities, and applies a second sigmoid.

    ## What it does
    Looks at what `F.binary_cross_entropy_with_logits` is given. It speaks where, on at least
    `min_steps` sampled steps, no number of any sample was under 0 or over 1, the numbers differ,
    and labels of both kinds were seen. Logits of a model that learns leave that range within a few
    steps.

    ## Why it matters
    The loss applies a sigmoid of its own. Of a number between 0 and 1 it makes one between 0.5 and
    0.73: the negative class cannot be told at all, and the loss of balanced labels cannot fall
    under 0.50.

    ## What to do
    Take the sigmoid out of the model, or use `F.binary_cross_entropy` (`nn.BCELoss`) with it.

    ## When it is wrong
    A model whose logits happen to stay between 0 and 1 because it hardly learns; then the loss is
    near 0.69 or above and other findings come first.

    ## How to confirm
    - Print the smallest and the largest output over an epoch: a sigmoid never leaves 0 to 1.
    """
    for owner, share in run[OUTPUT_PROBABILITY_FRACTION].items():
        if owner != "binary_cross_entropy_with_logits" or not len(share):
            continue
        low, high = readings(run, OUTPUT_MIN, owner), readings(run, OUTPUT_MAX, owner)
        said = f"{owner} is given {low.min():.3g} to {high.max():.3g}" if len(low) else owner
        entropy = last(run, TARGET_ENTROPY, owner) or 0
        inside = len(low) and low.min() >= 0 and high.max() <= 1 and (high > low).any()
        if not inside or entropy < _ONE_KIND:
            yield doubled_sigmoid.clear(f"{said}: logits")
        elif len(share) < min_steps:
            yield doubled_sigmoid.not_examined(f"{len(share)} of the {min_steps} steps needed")
        else:
            yield doubled_sigmoid.finding(
                f"{said} on all {len(share)} sampled steps: these are probabilities, to which it"
                " applies a second sigmoid",
                confidence=Confidence.CERTAIN if len(share) >= _SURE else Confidence.LIKELY,
                onset=share.first,
                evidence=(
                    Evidence(
                        OUTPUT_MIN, (share.first, share.last), f"never under {low.min():.3g}", owner
                    ),
                    Evidence(
                        OUTPUT_MAX, (share.first, share.last), f"never over {high.max():.3g}", owner
                    ),
                ),
                fix="take the sigmoid out of the model, or use binary_cross_entropy (BCELoss)",
            )
