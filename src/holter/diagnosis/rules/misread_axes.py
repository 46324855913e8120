"""The source takes one axis of a tensor for another."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "softmax over queries": Mistake(
        "`{code}` normalises `{subject}` over the queries; the weights of one query do not"
        " sum to 1",
        "normalise over the keys: `softmax(dim=-1)`",
    ),
    "argmax of all": Mistake(
        "`{code}`: `{subject}` is one index into the whole batch, which is compared with"
        " every label",
        "take the maximum over the classes: `argmax(dim=1)`",
    ),
    "exchanged indices": Mistake(
        "`{code}` has the column before the row, and `{subject}` beside it the row before the"
        " column: they write to different places",
        "index both in the order (row, column)",
    ),
    "scaled by batch": Mistake(
        "`{code}` scales `{subject}` by the mean and deviation of the whole batch: the output for a"
        " sample depends on the others, also in evaluation",
        "leave out the first axis: `x.mean(dim=(1, 2), keepdim=True)`",
    ),
    "batch normalised": Mistake(
        "`{code}` divides by the length over the batch: no vector has length 1, and each depends"
        " on the other samples",
        "normalise over the features: `F.normalize({subject}, dim=-1)`",
    ),
    "batch as time": Mistake(
        "`{code}` takes (time, batch, features), and is given batches with their samples first:"
        " `{subject}` runs over the samples, and `out[:, -1]` is the last sample",
        "pass `batch_first=True` to `{subject}`",
    ),
    "batch attended": Mistake(
        "`{code}` takes (time, batch, features), and is given batches with their samples first:"
        " `{subject}` attends to the other samples",
        "pass `batch_first=True`",
    ),
    "reshaped axes": Mistake(
        "`{code}` gives `{subject}` its sizes in another order; the values stay where they are, so"
        " that they land at other positions",
        "exchange axes by `transpose` or `permute`, after a `view` that keeps their order",
    ),
    "reshaped classes": Mistake(
        "`{code}` moves no axis of `{subject}`: scores of different positions and classes are"
        " taken for those of one position",
        "move the axis of the classes: `{subject}.transpose(1, 2)` for (batch, time, classes),"
        " `{subject}.permute(0, 2, 3, 1)` for (batch, classes, height, width)",
    ),
    "softmax over another axis": Mistake(
        "`{code}` makes weights that sum to 1 over one axis, and a weighted sum over another one"
        " uses `{subject}`",
        "normalise over the axis of the sum",
    ),
    "softmax over the batch": Mistake(
        "`{code}` makes probabilities over the samples, and the most likely class of each sample is"
        " taken from `{subject}`",
        "normalise over the classes: `softmax(dim=-1)`",
    ),
    "penalty of pixels": Mistake(
        "`{code}` takes the norm of `{subject}` over one axis of images: the penalty is for each"
        " pixel, not for each sample",
        "flatten first: `{subject}.flatten(1).norm(2, dim=1)`",
    ),
    "penalty of batch": Mistake(
        "`{code}` takes one norm of `{subject}` for the whole batch; the penalty is meant for each"
        " sample",
        "one norm per sample: `{subject}.flatten(1).norm(2, dim=1)`",
    ),
    "score of features": Mistake(
        "`{code}` averages over the samples: `{subject}` returns one score for each feature",
        "average over the features: `.mean(dim=1)`",
    ),
    "merged heads": Mistake(
        "`{code}` merges the heads with the positions: `{subject}` is (batch, heads, time,"
        " size), and its heads are not moved behind the time",
        "move the heads before they are merged: `x.transpose(1, 2).reshape(B, T, C)`",
    ),
    "state by view": Mistake(
        "`{code}` cuts the final state `{subject}` of (layers, batch, size) into rows that hold"
        " the states of different samples",
        "move the batch to the front: `{subject}.transpose(0, 1).reshape(batch, -1)`, or join"
        " layers with `torch.cat([{subject}[-2], {subject}[-1]], dim=1)`",
    ),
    "time first": Mistake(
        "`{code}` returns (time, batch, features), although the sequences were packed with"
        " `batch_first=True`, and nothing exchanges the axes",
        "pass `batch_first=True` to `{subject}` as well",
    ),
    "time-major steps": Mistake(
        "`{code}` stacks `{subject}` as (time, batch, classes), and its flattened rows are"
        " compared with targets that are flattened sample by sample",
        "stack along the axis of time: `torch.stack({subject}, dim=1)`",
    ),
    "single score": Mistake(
        "`{code}` is a softmax over one score, of `{subject}`: its result is always 1",
        "normalise over the positions: `softmax(dim=1)` for (batch, time, 1)",
    ),
    "column beside row": Mistake(
        "`{code}` compares `{subject}` of shape (N, 1) with a tensor of shape (N,): both are"
        " broadcast to (N, N), and each value is compared with all targets of the batch",
        "remove the last axis: `.squeeze(1)`",
    ),
    "crossed columns": Mistake(
        "`{code}` puts successive tokens into different columns: along a column, each step"
        " skips `{subject}` tokens",
        "cut the stream into rows and turn them: `ids.view({subject}, -1).t()`",
    ),
    "turned targets": Mistake(
        "`{code}` flattens scores sample by sample, and `{subject}` step by step: they belong"
        " to different positions",
        "flatten both in the same order: `{subject}.reshape(-1)`",
    ),
    "exchanged sizes": Mistake(
        "`{code}` calls the number of rows `{subject}`: the shape of an image is height, width",
        "`h, w = img.shape[:2]`",
        Confidence.HINT,  # both may be exchanged everywhere
    ),
    "scaled by other side": Mistake(
        "`{code}` divides the x coordinates of `{subject}` by the height, and y by the width",
        "x belongs to the width, y to the height",
    ),
    "unit length over batch": Mistake(
        "`{code}` normalises columns of `{subject}`, over the batch, and its rows are compared"
        " afterwards: they have no unit length",
        "normalise each row: `F.normalize({subject}, dim=1)`",
    ),
    "softmax of other axes": Mistake(
        "`{code}` multiplies two distributions that are normalised over different axes, one"
        " by `{subject}`",
        "normalise both over the same axis",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def misread_axes(facts: Facts) -> Iterator[Verdict]:
    """The source takes one axis of a tensor for another.

    ## What it does
    Reads the source of the script and of modules beside it. It reports recurrent and attention
    layers without `batch_first` that are given batches of samples, weights and probabilities that
    are normalised over another axis than they are used along, an `argmax()` over a whole batch, and
    `view` or `reshape` where axes are to be exchanged, as for the channels of images. It also
    reports columns that a loss compares with rows, a row and a column that index two arrays side by
    side in different order, gradient penalties whose norm is not that of a sample, anomaly scores
    of features, and widths and heights that are exchanged.

    ## Why it matters
    Nothing fails, because the sizes fit. The model sees other samples instead of other positions,
    attention cannot choose a position, or an accuracy is printed that means nothing.

    ## Example
    ```python
    attention = (q @ k.mT).softmax(dim=-2) @ v  # bad
    attention = (q @ k.mT).softmax(dim=-1) @ v  # good
    ```

    ## What to do
    Name the axis that is meant: `batch_first=True`, `softmax(dim=-1)` over keys, `argmax(dim=1)`
    over classes.

    ## When it is wrong
    Scores are laid out as (keys, queries). Batches have one sample, or none and the first axis is
    the features. One of two arrays is meant to be the transpose of the other.

    ## How to confirm
    - Change one sample of a batch and check that the outputs of the others stay the same.
    """
    yield from concluded(misread_axes, facts, _MISTAKES)
