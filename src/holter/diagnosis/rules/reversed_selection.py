"""The source keeps the worst weights, or copies weights in the wrong direction."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "kept worst": Mistake(
        "`{code}` decides what is kept as the best: it keeps the worst value of `{subject}`",
        'reverse the comparison and the initial value: `best = float("inf")` and'
        " `loss < best`, or `best = 0.0` and `accuracy > best`",
    ),
    "reversed copy": Mistake(
        "`{code}` overwrites the network that learns by `{subject}`, which lags behind: it"
        " undoes the training since the last copy",
        "copy in the other direction: `{subject}.load_state_dict(...)` of the network that learns",
    ),
    "self copy": Mistake(
        "`{code}` copies `{subject}` onto itself: it never follows the network that learns",
        "copy the network that learns: `{subject}.load_state_dict(model.state_dict())`",
    ),
    "average before its start": Mistake(
        "`{code}` updates the average before the epoch at which it is meant to start, and not"
        " after it",
        "reverse the comparison: `if epoch >= swa_start: swa.update_parameters(model)`",
    ),
    "mixed score": Mistake(
        "`{code}` adds a figure that is better if higher to one that is better if lower: by"
        " `{subject}`, weights are kept for being worse at one of both",
        "bring them to one direction: `{subject} = error + (1 - accuracy)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def reversed_selection(facts: Facts) -> Iterator[Verdict]:
    """The source keeps the worst weights, or copies weights in the wrong direction.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a condition that keeps a
    loss as the best one when it is larger, or an accuracy when it is smaller, a loop that loads
    the weights of a target network into the network that learns, and a target network or an
    average that is copied onto itself.

    ## Why it matters
    The checkpoint of the worst epoch is reported, deployed or used to stop early. A network that
    is overwritten by its own target loses everything that it learned since the copy. A target
    network that is copied onto itself keeps its initial weights.

    ## Example
    ```python
    if val_loss > best: best, state = val_loss, copy.deepcopy(model.state_dict())  # bad
    if val_loss < best: best, state = val_loss, copy.deepcopy(model.state_dict())  # good
    ```

    ## What to do
    Compare a loss or an error by `<` and an accuracy by `>`. Call `load_state_dict` on the network
    that should change.

    ## When it is wrong
    The largest loss is searched on purpose, as for an attack or for the hardest samples. The name
    says loss, but larger values are better. A target network replaces the other one after
    training.

    ## How to confirm
    - Print the epoch of the checkpoint that is kept, and its metric beside those of the other
      epochs.
    """
    yield from concluded(reversed_selection, facts, _MISTAKES)
