"""The source decodes a sequence with operations in the wrong order."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "late merge": Mistake(
        "`{code}` merges repeats after blanks were removed: a symbol that occurs twice in a row,"
        " with a blank between, becomes one",
        "merge first: `ids = torch.unique_consecutive(ids)`, then `ids = ids[ids != blank]`",
    ),
    "late temperature": Mistake(
        "`{code}` divides probabilities by the temperature `{subject}`; sampling normalises them"
        " again, so it has no effect",
        "divide the logits: `(logits / {subject}).softmax(-1)`",
    ),
    "oldest context": Mistake(
        "`{code}` keeps the oldest tokens of `{subject}`: once it is longer, every new token is"
        " predicted from the same context",
        "keep the newest: `{subject}[:, -block_size:]`",
    ),
    "uncropped context": Mistake(
        "`{code}` receives all of `{subject}`, which grows with each step beyond the model's"
        " maximum length",
        "crop it to the last positions: `model({subject}[:, -block_size:])`",
    ),
    "added probabilities": Mistake(
        "`{code}` adds probabilities (`{subject}`) to the score of a hypothesis, which is a sum"
        " of log probabilities",
        "use `log_softmax`, whose values add up to the log probability of the sequence",
    ),
    "stale state": Mistake(
        "`{code}`: the new state `{subject}` is never used, so the next step starts with the old"
        " one",
        "keep `{subject}` for the next step",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def misordered_decoding(facts: Facts) -> Iterator[Verdict]:
    """The source decodes a sequence with operations in the wrong order.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports `unique_consecutive` or
    `groupby` of a sequence from which the blank was removed before, and loops that skip blanks
    before they compare a symbol with the previous one. It also reports a temperature after the
    softmax, a context that drops its newest tokens, a beam search that adds probabilities, and
    steps that start from an old state.

    ## Why it matters
    The blank between two equal symbols distinguishes `ll` from `l`. Without it both are merged. A
    step that starts from an old state or context forgets what was decoded. The error rate is too
    high although the model is right, and a checkpoint selected by it may be the wrong one.

    ## Example
    ```python
    text = torch.unique_consecutive(ids[ids != blank])                            # bad
    ids = torch.unique_consecutive(ids); text = ids[ids != blank]                 # good
    ```

    ## What to do
    Merge repeats, then remove blanks. Divide logits by the temperature, keep the newest tokens, add
    log probabilities, and pass on the new state.

    ## When it is wrong
    No sequence has the same symbol twice in a row.

    ## How to confirm
    - Decode `a blank a`: the result must be `aa`.
    """
    yield from concluded(misordered_decoding, facts, _MISTAKES)
