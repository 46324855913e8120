"""The source counts padding as targets."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "counted padding": Mistake(
        "`{code}` pads labels with {subject}, which is not the `ignore_index` of the loss: padding"
        " is trained as a label",
        "pad labels with the value that the loss ignores: `pad_sequence(labels,"
        " batch_first=True, padding_value=-100)`",
    ),
    "unmasked sum": Mistake(
        "`{code}` divides by the number of samples in `{subject}`, but sums over all of them:"
        " samples without a target contribute their placeholder value",
        "mask the sum as well: `(rows * {subject}).sum() / {subject}.sum()`",
    ),
    "ignored counted": Mistake(
        "`{code}` divides by all elements of `{subject}`, but the summed loss excludes those with"
        " `ignore_index`: the more padding, the smaller the mean",
        "count only what the loss counts: `({subject} != ignore_index).sum()`",
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
        "`{code}` runs over the padding and ignores the lengths: `{subject}` is the state after"
        " the last padding element",
        "pack the batch: `pack_padded_sequence(x, lengths.cpu(), batch_first=True,"
        " enforce_sorted=False)`",
    ),
    "padded lengths": Mistake(
        "`{code}` gives every sequence the padded length instead of its own in `{subject}`",
        "pass the real lengths, after the same stride as the frames",
    ),
    "padding in accuracy": Mistake(
        "`{code}` averages correct predictions over all positions of `{subject}`, including the"
        " padding that the loss ignores",
        "exclude padding: `keep = {subject} != PAD; (pred == {subject})[keep].float().mean()`",
    ),
    "padding sides": Mistake(
        "`{code}` pads on the left, while another sequence of the same batch is padded on the"
        " right: their elements are misaligned",
        "pad all sequences of a batch on the same side",
    ),
    "ignored in overlap": Mistake(
        "`{code}` sums over every pixel; the cross entropy next to it ignores the class {subject}",
        "exclude them: `probability * (target != {subject})`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def counted_padding(facts: Facts) -> Iterator[Verdict]:
    """The source counts padding as targets.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports `pad_sequence` of
    labels with a value other than the loss's `ignore_index`, an unmasked sum of losses divided by
    the sum of a mask, and a sum that ignores some targets but is divided by the number of all. It
    also reports means over positions, last positions, lengths and accuracies that include padding.

    ## Why it matters
    Padding is easy to predict. It makes up much of the loss and the accuracy, so both look better
    than they are, and the model learns to predict the padding value. A mean over the wrong count
    depends on how much of a batch is padding.

    ## Example
    ```python
    labels = pad_sequence(labels, batch_first=True)                      # bad
    labels = pad_sequence(labels, batch_first=True, padding_value=-100)  # good
    ```

    ## What to do
    Pad with the `ignore_index` of the loss (default -100), and exclude the same positions from
    metrics.

    ## When it is wrong
    The loss or the metric is masked in another way, for example by lengths. A constant divisor is
    intended, so that each token has the same weight in all batches.

    ## How to confirm
    - Print the labels of the shortest sample of a batch.
    """
    yield from concluded(counted_padding, facts, _MISTAKES)
