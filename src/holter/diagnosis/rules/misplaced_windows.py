"""The source takes inputs or targets from the wrong rows."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "target is input": Mistake(
        "`{code}` uses the input window of `{subject}` as the target: the model learns to copy it",
        "shift the target window: `y = s[i + 1 : i + n + 1]` for `x = s[i : i + n]`",
    ),
    "target inside": Mistake(
        "`{code}` takes the target from inside the input window of `{subject}`: the inputs contain"
        " the answer",
        "take the target from after the window: `s[i + n + horizon - 1]` for `s[i : i + n]`",
    ),
    "skipped target": Mistake(
        "`{code}` takes the targets several elements after the inputs in `{subject}`: the model"
        " skips the next elements",
        "shift the targets by one element: `y = s[i + 1 : i + n + 1]` for `x = s[i : i + n]`",
        Confidence.HINT,  # a task may be so
    ),
    "future scale": Mistake(
        "`{code}` computes `{subject}` over the input window and the future: the scaled inputs"
        " leak the level of the target",
        "compute it over the input window only",
    ),
    "unshifted input": Mistake(
        "`{code}` receives `{subject}`, which is also the target of its loss: each position sees"
        " the token that it predicts",
        "pass the tokens before the targets: `decoder(tgt[:, :-1])` for the targets `tgt[:, 1:]`",
    ),
    "overlapping batches": Mistake(
        "`{code}` slices by the batch index instead of the row index: consecutive batches share"
        " all rows but one",
        "multiply by the batch size, or let the loop do it: `range(0, len(x), {subject})`",
    ),
    "same rows": Mistake(
        "`{code}` takes the first rows of `{subject}` in every iteration of the loop",
        "start the slice at the loop variable: `{subject}[i : i + size]`",
    ),
    "lagging token": Mistake(
        "`{code}` feeds the wrong token of `{subject}`: given the first input of the loop, one"
        " token is fed twice or skipped",
        "feed the token that the step predicts: `token = tgt[:, t]` after step t, whose input is"
        " `tgt[:, t - 1]`",
    ),
    "forced evaluation": Mistake(
        "`{code}` evaluates with teacher forcing (`{subject}`): each step receives the true"
        " previous value",
        "feed the model its own outputs: pass no target, and set `{subject}` to 0",
    ),
    "own answer": Mistake(
        "`{code}` feeds a step the value of `{subject}` that it should predict: it learns to copy"
        " its input",
        "feed the value of the previous step: choose the next input after the prediction",
    ),
    "labels after masking": Mistake(
        "`{code}` copies `{subject}` after masking: the labels equal the masked input",
        "copy the labels before masking: `labels = {subject}.clone()`",
    ),
    "visible labels": Mistake(
        "`{code}` ignores the masked tokens and trains on the visible ones",
        "ignore the visible ones: `labels[~{subject}] = -100`",
    ),
    "shifted twice": Mistake(
        "`{code}`: `{subject}` is already shifted by one token and is shifted again: the model"
        " learns to predict the token after the next",
        "shift once",
    ),
    "state across samples": Mistake(
        "`{code}` carries `{subject}` over between batches of a shuffled loader: each sample"
        " starts with the state of another one",
        "start each batch with a new state, or do not shuffle",
    ),
    "mostly masked": Mistake(
        "`{code}` masks the positions above the masking probability instead of those below: most"
        " of the text is masked",
        "mask the positions below it: `torch.rand(ids.shape) < prob`",
    ),
    "labels behind": Mistake(
        "`{code}` pads the labels at the opposite end from the input: each label is one position"
        " away from its token",
        "pad both at the same end",
    ),
    "centred window": Mistake(
        "`{code}` smooths with a centred window (`{subject}`): at the last input row it contains"
        " future rows that should be predicted",
        "use past rows only: `series.rolling(k).mean()`, or pad on the left:"
        " `np.convolve(np.concatenate([np.full(k - 1, x[0]), x]), kernel, 'valid')`",
    ),
    "later rows": Mistake(
        "`{code}` writes values of later rows into the feature `{subject}`",
        "shift by a positive number: `df['load'].shift(24)`, `np.roll(x, k)`",
    ),
    "filled backwards": Mistake(
        "`{code}` fills gaps of a series with the next value, which is unknown at that time",
        "fill with the previous value: `df.ffill()`",
        Confidence.HINT,  # a gap at the beginning has no value before it
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def misplaced_windows(facts: Facts) -> Iterator[Verdict]:
    """The source takes inputs or targets from the wrong rows.

    ## What it does
    Reads the source of the script and of the modules next to it. It compares the bounds of slices
    and reports targets inside the input window, equal to it, or several tokens after it, scaling
    statistics that include the future, and a decoder that receives its own targets. It also reports
    batches sliced by the batch index or always at the same place, and forecast features computed
    from later rows by centred windows, negative shifts or backward filling.

    ## Why it matters
    A model whose inputs contain the answer has a very small loss and predicts nothing. A loop over
    the wrong rows trains on a fraction of the data.

    ## Example
    ```python
    x, y = s[i : i + n], s[i + n - h : i + n]  # bad
    x, y = s[i : i + n], s[i + n : i + n + h]  # good
    ```

    ## What to do
    Write down the first and last element of the inputs, and check that the first target comes after
    them.

    ## When it is wrong
    The target is intentionally part of the input, as in denoising or sequence labelling.

    ## How to confirm
    - Print the indices of the inputs and of the targets of one sample.
    """
    yield from concluded(misplaced_windows, facts, _MISTAKES)
