"""A softmax runs over the samples of the batch instead of the classes."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS_BATCH_SOFTMAX


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(LOSS_BATCH_SOFTMAX,),
)
def batch_axis_softmax(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 3,
    min_share: Annotated[float, "share of the steps; a last batch may be square"] = 0.9,
) -> Iterator[Verdict]:
    """A softmax runs over the samples of the batch instead of the classes.

    ## What it does
    Reads the autograd graph of the loss. It reports a `softmax` or `log_softmax` over axis 0 of a
    (samples, classes) matrix, or of images, if it is the last operation of the model or lies
    between the model and the loss, also in a Dice term. Square matrices, as in a contrastive loss,
    and targets that index the rows, as in ranking, are excluded.

    ## Why it matters
    The probabilities of one class add up to 1 over the batch, so samples compete with each other
    for each class. The loss falls a little, and the prediction for a sample depends on the rest of
    its batch: the model is useless for single samples.

    ## Example
    ```python
    probabilities = torch.softmax(logits, dim=0)   # bad
    probabilities = torch.softmax(logits, dim=1)   # good
    ```

    ## What to do
    Use `dim=1`, or `dim=-1` where the classes are the last axis. Better, pass the logits to
    `F.cross_entropy`.

    ## When it is wrong
    The rows are parts of one sample, such as the instances of a bag, and are weighted against each
    other on purpose, column by column.

    ## How to confirm
    - Print `probabilities.sum(1)`: it should be 1 for every sample.
    """
    over = facts.run[LOSS_BATCH_SOFTMAX].get("")
    if over is None or not len(over):
        yield batch_axis_softmax.not_examined("no softmax over a matrix was seen")
        return
    share = float(over.values.mean())
    measured = f"a softmax runs over the samples on {portion(share)} of {len(over)} sampled steps"
    if share < min_share:
        yield batch_axis_softmax.clear(measured)
    elif len(over) < min_steps:
        yield batch_axis_softmax.not_examined(f"{len(over)} of the {min_steps} steps needed")
    else:
        yield batch_axis_softmax.finding(
            f"{measured}: it normalises each class over the batch",
            confidence=Confidence.CERTAIN,
            onset=over.first,
            evidence=(
                Evidence(
                    LOSS_BATCH_SOFTMAX,
                    (over.first, over.last),
                    f"over axis 0, the samples, on {portion(share)} of the steps",
                ),
            ),
            fix="apply the softmax over the classes: `torch.softmax(logits, dim=1)`",
        )
