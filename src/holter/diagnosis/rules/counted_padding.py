"""The source pads labels with a value that the loss does not ignore."""

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
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def counted_padding(facts: Facts) -> Iterator[Verdict]:
    """The source pads labels with a value that the loss does not ignore.

    ## What it does
    Reads the source of the script and of modules beside it. It reports `pad_sequence` of labels
    with another value than the `ignore_index` that the script gives to its loss.

    ## Why it matters
    Padding is easy to predict. It makes up much of the loss and of the accuracy, which look better
    than they are, and the model is trained towards the class whose number was used.

    ## Example
    ```python
    labels = pad_sequence(labels, batch_first=True)                      # bad
    labels = pad_sequence(labels, batch_first=True, padding_value=-100)  # good
    ```

    ## What to do
    Pad with the `ignore_index` of the loss, -100 unless told otherwise, and leave the same
    positions out of metrics.

    ## When it is wrong
    The loss or the metric is masked by other means, such as lengths.

    ## How to confirm
    - Print the labels of the shortest sample of a batch.
    """
    yield from concluded(counted_padding, facts, _MISTAKES)
