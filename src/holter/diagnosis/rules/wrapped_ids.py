"""The source gives different tokens the same id."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "wrapped ids": Mistake(
        "`{code}`: {subject}; larger ids wrap around and become other tokens",
        "store ids in a wider type: `np.int32` or `torch.long`",
    ),
    "reserved id": Mistake(
        "`{code}` starts at the id of `{subject}`: the first word of the vocabulary gets the same"
        " id",
        "start after the special ids: `enumerate(words, start=2)`",
    ),
    "unknown as padding": Mistake(
        "`{code}` maps words missing from `{subject}` to the padding id: they are masked out",
        "use the id of unknown words: `{subject}.get(word, UNK)`",
    ),
    "unordered ids": Mistake(
        "`{code}` numbers the elements of a set of strings: their order differs between processes,"
        " so saved weights do not match the ids of the next process",
        "sort it: `{subject} = sorted(...)`, and save it with the weights",
        Confidence.HINT,
    ),
    "blank is a class": Mistake(
        "`{code}`: labels start at 0, the blank of the CTC loss: the first symbol of `{subject}`"
        " cannot be recognised",
        "start at 1, and add one model output: `index + 1`, `len(symbols) + 1`",
    ),
    "clamped labels": Mistake(
        "`{code}` turns negative labels, which mark missing ones, into class 0: samples without a"
        " label are trained as that class",
        "exclude them: `F.cross_entropy(logits, labels, ignore_index=-1)`",
    ),
    "code of the first": Mistake(
        "`{code}` maps unknown values to code 0, which is also the code of the first value of"
        " `{subject}`",
        "start at 1: `enumerate(values, start=1)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def wrapped_ids(facts: Facts) -> Iterator[Verdict]:
    """The source gives different tokens the same id.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports ids that are converted
    to a small integer type and then back to an index type, if an embedding in the same file has
    more rows than the small type has values. It also reports vocabularies whose first words share
    the ids of padding, of unknown words, or of the CTC blank.

    ## Why it matters
    There is no error: 256 in `uint8` is 0, and 65,536 in `uint16` is 0. Some tokens silently become
    padding, a separator or a different word, in training and validation alike. The loss is
    plausible, but it is measured on corrupted data.

    ## Example
    ```python
    ids = torch.from_numpy(np.array(tokens).astype(np.uint8)).long()   # bad
    ids = torch.from_numpy(np.array(tokens).astype(np.int32)).long()   # good
    ```

    ## What to do
    Choose the type by vocabulary size: `np.uint16` up to 65,536 tokens, `np.int32` or `np.uint32`
    beyond. Start word ids after the special tokens.

    ## When it is wrong
    The large ids are added after the conversion, or never occur in these data.

    ## How to confirm
    - Print the largest id before and after the conversion.
    """
    yield from concluded(wrapped_ids, facts, _MISTAKES)
