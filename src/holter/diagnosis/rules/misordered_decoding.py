"""The source decodes a sequence by steps in the wrong order."""

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
        "`{code}` divides probabilities by the temperature `{subject}`; drawing from them"
        " normalises again, so that it has no effect",
        "divide the logits: `(logits / {subject}).softmax(-1)`",
    ),
    "oldest context": Mistake(
        "`{code}` keeps the oldest tokens of `{subject}`: once it is longer, every new token is"
        " predicted from the same context",
        "keep the newest: `{subject}[:, -block_size:]`",
    ),
    "uncropped context": Mistake(
        "`{code}` is given all of `{subject}`, which grows with each step beyond the positions"
        " that the model has",
        "crop it to the last positions: `model({subject}[:, -block_size:])`",
    ),
    "added probabilities": Mistake(
        "`{code}` adds probabilities (`{subject}`) to the score of a hypothesis, which is a sum"
        " of log probabilities",
        "use `log_softmax`, whose values add up to the log probability of the sequence",
    ),
    "stale state": Mistake(
        "`{code}`: nothing reads the new state `{subject}`, so that the next step begins with"
        " the old one",
        "keep `{subject}` for the next step",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def misordered_decoding(facts: Facts) -> Iterator[Verdict]:
    """The source decodes a sequence by steps in the wrong order.

    ## What it does
    Reads the source of the script and of modules beside it. It reports `unique_consecutive` or
    `groupby` of a sequence from which the blank was removed before, and loops that skip blanks
    before they compare a symbol with the previous one. It also reports a temperature after the
    softmax, a context that is cut at its end, a beam that adds probabilities, and steps that begin
    with an old state.

    ## Why it matters
    The blank between two equal symbols is what tells `ll` from `l`. Without it both are merged. A
    step that begins with an old state or context forgets what was decoded. The error rate is too
    high although the model is right, and a checkpoint that is chosen by it may be the wrong one.

    ## Example
    ```python
    text = torch.unique_consecutive(ids[ids != blank])                            # bad
    ids = torch.unique_consecutive(ids); text = ids[ids != blank]                 # good
    ```

    ## What to do
    Merge repeats, then remove blanks. Divide logits by the temperature, keep the newest tokens, add
    log probabilities, and hand the new state on.

    ## When it is wrong
    No sequence has the same symbol twice in a row.

    ## How to confirm
    - Decode `a blank a`, which has to give `aa`.
    """
    yield from concluded(misordered_decoding, facts, _MISTAKES)
