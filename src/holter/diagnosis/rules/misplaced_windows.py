"""The source takes other rows for inputs or targets than those that are meant."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "target is input": Mistake(
        "`{code}` takes the window of `{subject}` that is the input: the model learns to copy it",
        "move the window of the target on: `y = s[i + 1 : i + n + 1]` for `x = s[i : i + n]`",
    ),
    "target inside": Mistake(
        "`{code}` takes the target from inside of the input window of `{subject}`: the answer is"
        " among the inputs",
        "take the target from behind the window: `s[i + n + horizon - 1]` for `s[i : i + n]`",
    ),
    "skipped target": Mistake(
        "`{code}` takes the targets several elements after the inputs in `{subject}`: the model"
        " learns to skip the next one",
        "move the targets by one element: `y = s[i + 1 : i + n + 1]` for `x = s[i : i + n]`",
        Confidence.HINT,  # a task may be so
    ),
    "future scale": Mistake(
        "`{code}` computes `{subject}` over the input window and what follows it: the scaled"
        " inputs show the level of what is to be predicted",
        "compute it over the input window only",
    ),
    "unshifted input": Mistake(
        "`{code}` is given `{subject}`, which is also the target of its loss: each position sees"
        " the token that it predicts",
        "pass the tokens before the targets: `decoder(tgt[:, :-1])` for the targets `tgt[:, 1:]`",
    ),
    "overlapping batches": Mistake(
        "`{code}` begins at the number of the batch, not at its first row: consecutive batches"
        " share all rows but one",
        "multiply by the batch size, or let the loop do it: `range(0, len(x), {subject})`",
    ),
    "same rows": Mistake(
        "`{code}` takes the first rows of `{subject}` in every iteration of the loop",
        "begin the slice at the loop variable: `{subject}[i : i + size]`",
    ),
    "lagging token": Mistake(
        "`{code}` feeds the wrong token of `{subject}`: with the token that the loop begins"
        " with, a step is fed one token twice, or leaves one out",
        "feed the token that the step has predicted: `token = tgt[:, t]` after the step t that"
        " begins with `tgt[:, t - 1]`",
    ),
    "forced evaluation": Mistake(
        "`{code}` evaluates with teacher forcing (`{subject}`): each step is given the true value"
        " of the one before",
        "let the model continue its own outputs: pass no target, and `{subject}` 0",
    ),
    "own answer": Mistake(
        "`{code}` feeds a step the value of `{subject}` that it is to predict: it learns to copy"
        " its input",
        "feed the value of the step before: choose the next input after the prediction",
    ),
    "labels after masking": Mistake(
        "`{code}` copies `{subject}` together with its masked tokens: the labels are what the"
        " input shows",
        "copy the labels before masking: `labels = {subject}.clone()`",
    ),
    "visible labels": Mistake(
        "`{code}` ignores the tokens that are masked, and scores those that the input shows",
        "ignore the others: `labels[~{subject}] = -100`",
    ),
    "shifted twice": Mistake(
        "`{code}`: `{subject}` is already one token later, and is shifted once more: the model"
        " learns to skip the next token",
        "shift once",
    ),
    "state across samples": Mistake(
        "`{code}` hands `{subject}` from batch to batch of a shuffled loader: each sample"
        " begins with the state of another one",
        "begin each batch with a new state, or serve the batches in order",
    ),
    "mostly masked": Mistake(
        "`{code}` masks the tokens above the share, not those below: most of the text is hidden",
        "choose the positions below it: `torch.rand(ids.shape) < prob`",
    ),
    "labels behind": Mistake(
        "`{code}` adds an element at the other end than the input has one: each label stands"
        " one position away from its token",
        "add it at the same end as in the input",
    ),
    "centred window": Mistake(
        "`{code}` smooths with a centred window (`{subject}`): at the last row of an input"
        " it contains rows that are to be predicted",
        "use past rows only: `series.rolling(k).mean()`, or pad on the left:"
        " `np.convolve(np.concatenate([np.full(k - 1, x[0]), x]), kernel, 'valid')`",
    ),
    "later rows": Mistake(
        "`{code}` puts values of later rows into the feature `{subject}`",
        "shift by a positive number: `df['load'].shift(24)`, `np.roll(x, k)`",
    ),
    "filled backwards": Mistake(
        "`{code}` fills gaps of a series with the next value, which is not known yet",
        "fill with the last value: `df.ffill()`",
        Confidence.HINT,  # a gap at the beginning has no value before it
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def misplaced_windows(facts: Facts) -> Iterator[Verdict]:
    """The source takes other rows for inputs or targets than those that are meant.

    ## What it does
    Reads the source of the script and of modules beside it. It compares the bounds of slices and
    reports targets inside of the input window, equal to it, or several tokens after it, a scale
    that is computed over the future, and a decoder that is given its own targets. It also reports
    batches that are cut at the number of the batch or always at the same place; and features of a
    forecast that are computed from later rows, by centred windows, negative shifts and backward
    filling.

    ## Why it matters
    A model that finds the answer among its inputs has a very small loss and predicts nothing. A
    loop over the wrong rows trains on a fraction of the data.

    ## Example
    ```python
    x, y = s[i : i + n], s[i + n - h : i + n]  # bad
    x, y = s[i : i + n], s[i + n : i + n + h]  # good
    ```

    ## What to do
    Write down which element is the first and the last of the inputs, and that the first target
    comes after them.

    ## When it is wrong
    The target is meant to be part of the input, as in denoising or in labelling each element.

    ## How to confirm
    - Print the indices of the inputs and of the targets of one sample.
    """
    yield from concluded(misplaced_windows, facts, _MISTAKES)
