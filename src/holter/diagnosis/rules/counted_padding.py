"""The source counts targets that are no targets, such as padding."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "counted padding": Mistake(
        "`{code}` pads labels with {subject}, which is not the `ignore_index` of the loss:"
        " padding counts as a label",
        "pad labels with the value that the loss ignores: `pad_sequence(labels,"
        " batch_first=True, padding_value=-100)`",
    ),
    "unmasked sum": Mistake(
        "`{code}` divides by the number of samples in `{subject}`, but sums over all: those"
        " without a target count with the number that stands in its place",
        "mask the sum as well: `(rows * {subject}).sum() / {subject}.sum()`",
    ),
    "ignored counted": Mistake(
        "`{code}` counts all elements of `{subject}`, but the sum of the losses leaves out those"
        " with `ignore_index`: the mean is too small, by more the more padding there is",
        "count what the loss counts: `({subject} != ignore_index).sum()`",
    ),
    "padded mean": Mistake(
        "`{code}` averages `{subject}` over all positions, padding included: short sequences"
        " consist mostly of padding",
        "average real positions: `(h * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True)`",
    ),
    "last padding": Mistake(
        "`{code}` takes the last position of `{subject}`, which is padding in all but the"
        " longest sequence of a batch",
        "take the last real position: pack the sequences and use the final state, or"
        " `{subject}[torch.arange(len(lengths)), lengths - 1]`",
    ),
    "state after padding": Mistake(
        "`{code}` runs over the padding, and the lengths are not used: `{subject}` is the state"
        " after the last padding",
        "pack the batch: `pack_padded_sequence(x, lengths.cpu(), batch_first=True,"
        " enforce_sorted=False)`",
    ),
    "padded lengths": Mistake(
        "`{code}` gives every sequence the padded length instead of its own in `{subject}`",
        "pass the real lengths, after the same stride as the frames",
    ),
    "padding in accuracy": Mistake(
        "`{code}` averages hits over all positions of `{subject}`, also those that the loss"
        " ignores as padding",
        "leave padding out: `keep = {subject} != PAD; (pred == {subject})[keep].float().mean()`",
    ),
    "padding sides": Mistake(
        "`{code}` pads on the left, and another sequence of the same batch is padded on the"
        " right: elements of both do not belong together",
        "pad all sequences of a batch on the same side",
    ),
    "ignored in overlap": Mistake(
        "`{code}` sums over every pixel; the cross entropy beside it ignores those of the"
        " class {subject}",
        "leave them out: `probability * (target != {subject})`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def counted_padding(facts: Facts) -> Iterator[Verdict]:
    """The source counts targets that are no targets, such as padding.

    ## What it does
    Reads the source of the script and of modules beside it. It reports `pad_sequence` of labels
    with another value than the `ignore_index` that the script gives to its loss, a sum of losses
    that is divided by the sum of a mask but not masked, and a sum that ignores some targets and is
    divided by the number of all. It also reports means over positions, last positions, lengths and
    accuracies that count padding.

    ## Why it matters
    Padding is easy to predict. It makes up much of the loss and of the accuracy, which look better
    than they are, and the model is trained towards the class whose number was used. A mean over the
    wrong number is no mean: it depends on how much of a batch is padding.

    ## Example
    ```python
    labels = pad_sequence(labels, batch_first=True)                      # bad
    labels = pad_sequence(labels, batch_first=True, padding_value=-100)  # good
    ```

    ## What to do
    Pad with the `ignore_index` of the loss, -100 unless told otherwise, and leave the same
    positions out of metrics.

    ## When it is wrong
    The loss or the metric is masked by other means, such as lengths. A constant divisor is wanted,
    so that each token has the same weight in all batches.

    ## How to confirm
    - Print the labels of the shortest sample of a batch.
    """
    yield from concluded(counted_padding, facts, _MISTAKES)
