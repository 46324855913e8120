"""Targets are shifted by more than one token."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import PAIRING_SHIFT


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(PAIRING_SHIFT,), preview=True)
def shifted_targets(facts: Facts) -> Iterator[Verdict]:
    """Targets are shifted by more than one token.

    ## What it does
    Uses the experiment `pairing`: if the targets are the tokens of the inputs, it compares them at
    several offsets. Reports targets that follow the inputs by two positions or more.

    ## Why it matters
    The model learns to predict the token after the next, but generation needs the next one. The
    loss falls less, and generated text is wrong. Often both the data set and the model (as in
    Transformers) shift the labels.

    ## Example
    ```python
    model(tokens[:, :-1], labels=tokens[:, 1:])    # bad
    model(tokens, labels=tokens)                   # good
    ```

    ## What to do
    Shift the targets by one position in one place only.

    ## When it is wrong
    Models that deliberately predict several tokens at once, or tokens at a given offset.

    ## How to confirm
    - Print the first input and its targets below each other.
    """
    shift = int(facts.run[PAIRING_SHIFT][""].values[-1])
    if shift < 2:  # of 0 speaks targets-equal-inputs; tokens that came before can be remembered
        yield shifted_targets.clear("no target is more than one position after its input")
        return
    yield shifted_targets.finding(
        f"the target of each position is the token {shift} positions after it",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(Evidence(PAIRING_SHIFT, (0, 0), f"{shift} positions"),),
        fix="shift the targets by one: `inputs, targets = tokens[:, :-1], tokens[:, 1:]`, and not"
        " again in the model",
    )
