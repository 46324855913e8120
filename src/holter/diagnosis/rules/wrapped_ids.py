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
        "`{code}` begins with the id of `{subject}`: the first word of the vocabulary is taken"
        " for it",
        "begin after the special ids: `enumerate(words, start=2)`",
    ),
    "unknown as padding": Mistake(
        "`{code}` gives words that `{subject}` lacks the id of padding: they are masked out",
        "use the id of unknown words: `{subject}.get(word, UNK)`",
    ),
    "unordered ids": Mistake(
        "`{code}` numbers the elements of a set of strings: their order differs between processes,"
        " so that saved weights belong to other ids in the next one",
        "sort it: `{subject} = sorted(...)`, and save it with the weights",
        Confidence.HINT,
    ),
    "blank is a class": Mistake(
        "`{code}`: labels begin with 0, which is the blank of the CTC loss: the first symbol of"
        " `{subject}` cannot be recognised",
        "begin with 1, and give the model one output more: `index + 1`, `len(symbols) + 1`",
    ),
    "clamped labels": Mistake(
        "`{code}` turns negative labels, which stand for unknown ones, into the class 0: samples"
        " without a label are trained as that class",
        "leave them out: `F.cross_entropy(logits, labels, ignore_index=-1)`",
    ),
    "code of the first": Mistake(
        "`{code}` gives unknown values the code 0, which is that of the first value of `{subject}`",
        "begin with 1: `enumerate(values, start=1)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def wrapped_ids(facts: Facts) -> Iterator[Verdict]:
    """The source gives different tokens the same id.

    ## What it does
    Reads the source of the script and of modules beside it. It reports numbers that are converted
    to a small integer type and then to that of an index, if an embedding of the same file has more
    rows than the small type has values. It also reports vocabularies whose first words have the ids
    of padding, of unknown words, or of the blank of a CTC loss.

    ## Why it matters
    Nothing fails: 256 in `uint8` is 0, and 65,536 in `uint16` is 0. A part of the tokens silently
    becomes padding, a separator or another word, in training and validation alike. The loss is
    plausible, and it is that of other data.

    ## Example
    ```python
    ids = torch.from_numpy(np.array(tokens).astype(np.uint8)).long()   # bad
    ids = torch.from_numpy(np.array(tokens).astype(np.int32)).long()   # good
    ```

    ## What to do
    Choose the type by the size of the vocabulary: `np.uint16` up to 65,536 tokens, `np.int32` or
    `np.uint32` beyond. Begin the ids of words after those of special tokens.

    ## When it is wrong
    The large ids of the embedding are added after the conversion, or never occur in these data.

    ## How to confirm
    - Print the largest id before and after the conversion.
    """
    yield from concluded(wrapped_ids, facts, _MISTAKES)
