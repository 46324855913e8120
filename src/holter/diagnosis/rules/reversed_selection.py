"""The source keeps the worst weights, or copies weights in the wrong direction."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "kept worst": Mistake(
        "`{code}` selects the best checkpoint, but keeps the worst value of `{subject}`",
        'reverse the comparison and the initial value: `best = float("inf")` and'
        " `loss < best`, or `best = 0.0` and `accuracy > best`",
    ),
    "reversed copy": Mistake(
        "`{code}` overwrites the trained network with the target network `{subject}`: it undoes"
        " the training since the last copy",
        "copy in the other direction: `{subject}.load_state_dict(...)` of the trained network",
    ),
    "self copy": Mistake(
        "`{code}` copies `{subject}` onto itself: it never follows the trained network",
        "copy the trained network: `{subject}.load_state_dict(model.state_dict())`",
    ),
    "average before its start": Mistake(
        "`{code}` updates the average before its start epoch instead of after it",
        "reverse the comparison: `if epoch >= swa_start: swa.update_parameters(model)`",
    ),
    "mixed score": Mistake(
        "`{code}` adds a higher-is-better metric to a lower-is-better one: `{subject}` rewards"
        " getting worse at one of them",
        "use the same direction for both: `{subject} = error + (1 - accuracy)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def reversed_selection(facts: Facts) -> Iterator[Verdict]:
    """The source keeps the worst weights, or copies weights in the wrong direction.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a condition that keeps
    a loss as the best one when it is larger, or an accuracy when it is smaller, a loop that loads
    the weights of a target network into the trained network, and a target network or an average
    that is copied onto itself.

    ## Why it matters
    The checkpoint of the worst epoch is reported, deployed or used for early stopping. A network
    that is overwritten by its target network loses everything learned since the last copy. A target
    network that is copied onto itself keeps its initial weights.

    ## Example
    ```python
    if val_loss > best: best, state = val_loss, copy.deepcopy(model.state_dict())  # bad
    if val_loss < best: best, state = val_loss, copy.deepcopy(model.state_dict())  # good
    ```

    ## What to do
    Compare losses and errors with `<` and accuracies with `>`. Call `load_state_dict` on the
    network that should change.

    ## When it is wrong
    The script searches for the largest loss on purpose, as for an attack or for the hardest
    samples. A variable named loss is better when larger. The target network intentionally replaces
    the trained one after training.

    ## How to confirm
    - Print the epoch of the selected checkpoint, and its metric next to those of the other epochs.
    """
    yield from concluded(reversed_selection, facts, _MISTAKES)
