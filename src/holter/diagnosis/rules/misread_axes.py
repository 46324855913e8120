"""The source confuses the axes of a tensor."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "softmax over queries": Mistake(
        "`{code}` normalises `{subject}` over the queries; the weights of each query do not sum to"
        " 1",
        "normalise over the keys: `softmax(dim=-1)`",
    ),
    "argmax of all": Mistake(
        "`{code}`: `{subject}` is a single index into the flattened batch and is compared with"
        " every label",
        "take the maximum over the classes: `argmax(dim=1)`",
    ),
    "exchanged indices": Mistake(
        "`{code}` indexes (column, row) while `{subject}` next to it indexes (row, column): they"
        " write to different elements",
        "index both in the order (row, column)",
    ),
    "scaled by batch": Mistake(
        "`{code}` normalises `{subject}` by the mean and standard deviation of the whole batch:"
        " the output for a sample depends on the others, also in evaluation",
        "exclude the first axis: `x.mean(dim=(1, 2), keepdim=True)`",
    ),
    "batch normalised": Mistake(
        "`{code}` divides by a norm over the batch axis: no vector has length 1, and each depends"
        " on the other samples",
        "normalise over the features: `F.normalize({subject}, dim=-1)`",
    ),
    "batch as time": Mistake(
        "`{code}` expects (time, batch, features) but receives batch-first tensors: `{subject}`"
        " runs over the samples, and `out[:, -1]` is the last sample",
        "pass `batch_first=True` to `{subject}`",
    ),
    "batch attended": Mistake(
        "`{code}` expects (time, batch, features) but receives batch-first tensors: `{subject}`"
        " attends to the other samples",
        "pass `batch_first=True`",
    ),
    "reshaped axes": Mistake(
        "`{code}` reshapes `{subject}` to its sizes in a different order without moving the"
        " values, so they end up at the wrong positions",
        "swap axes with `transpose` or `permute`, after a `view` that keeps their order",
    ),
    "reshaped classes": Mistake(
        "`{code}` does not move any axis of `{subject}`: scores of different positions and classes"
        " are mixed",
        "move the axis of the classes: `{subject}.transpose(1, 2)` for (batch, time, classes),"
        " `{subject}.permute(0, 2, 3, 1)` for (batch, classes, height, width)",
    ),
    "softmax over another axis": Mistake(
        "`{code}` computes weights that sum to 1 over one axis, but `{subject}` is used in a"
        " weighted sum over another",
        "normalise over the axis of the sum",
    ),
    "softmax over the batch": Mistake(
        "`{code}` computes a softmax over the samples, but `{subject}` is used for the most likely"
        " class of each sample",
        "normalise over the classes: `softmax(dim=-1)`",
    ),
    "penalty of pixels": Mistake(
        "`{code}` takes the norm of `{subject}` over one axis of images: the penalty is per pixel,"
        " not per sample",
        "flatten first: `{subject}.flatten(1).norm(2, dim=1)`",
    ),
    "penalty of batch": Mistake(
        "`{code}` takes one norm of `{subject}` for the whole batch; the penalty should be per"
        " sample",
        "one norm per sample: `{subject}.flatten(1).norm(2, dim=1)`",
    ),
    "score of features": Mistake(
        "`{code}` averages over the samples: `{subject}` returns one score per feature",
        "average over the features: `.mean(dim=1)`",
    ),
    "merged heads": Mistake(
        "`{code}` merges the heads with the positions: `{subject}` is (batch, heads, time, size),"
        " and the heads are not moved after the time axis",
        "transpose before merging: `x.transpose(1, 2).reshape(B, T, C)`",
    ),
    "state by view": Mistake(
        "`{code}` reshapes the final state `{subject}` of shape (layers, batch, size) into rows"
        " that mix the states of different samples",
        "move the batch to the front: `{subject}.transpose(0, 1).reshape(batch, -1)`, or"
        " concatenate layers with `torch.cat([{subject}[-2], {subject}[-1]], dim=1)`",
    ),
    "time first": Mistake(
        "`{code}` returns (time, batch, features), although the sequences were packed with"
        " `batch_first=True`",
        "pass `batch_first=True` to `{subject}` as well",
    ),
    "time-major steps": Mistake(
        "`{code}` stacks `{subject}` as (time, batch, classes), but its flattened rows are"
        " compared with targets in sample-major order",
        "stack along the time axis: `torch.stack({subject}, dim=1)`",
    ),
    "single score": Mistake(
        "`{code}` is a softmax over a single score of `{subject}`: its result is always 1",
        "normalise over the positions: `softmax(dim=1)` for (batch, time, 1)",
    ),
    "column beside row": Mistake(
        "`{code}` compares `{subject}` of shape (N, 1) with a tensor of shape (N,): both are"
        " broadcast to (N, N), and each value is compared with all targets of the batch",
        "remove the last axis: `.squeeze(1)`",
    ),
    "crossed columns": Mistake(
        "`{code}` puts consecutive tokens into different columns: along a column, each step skips"
        " `{subject}` tokens",
        "split the stream into rows and transpose: `ids.view({subject}, -1).t()`",
    ),
    "turned targets": Mistake(
        "`{code}` flattens scores in sample-major order and `{subject}` in time-major order: they"
        " belong to different positions",
        "flatten both in the same order: `{subject}.reshape(-1)`",
    ),
    "exchanged sizes": Mistake(
        "`{code}` assigns the number of rows to `{subject}`: the shape of an image is (height,"
        " width)",
        "`h, w = img.shape[:2]`",
        Confidence.HINT,  # both may be exchanged everywhere
    ),
    "scaled by other side": Mistake(
        "`{code}` divides the x coordinates of `{subject}` by the height, and y by the width",
        "divide x by the width and y by the height",
    ),
    "unit length over batch": Mistake(
        "`{code}` normalises the columns of `{subject}` over the batch, but its rows, which are"
        " compared later, do not have unit length",
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
    """The source confuses the axes of a tensor.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports recurrent and attention
    layers without `batch_first` that receive batch-first tensors, weights and probabilities
    normalised over the wrong axis, an `argmax()` over a whole batch, and `view` or `reshape`
    instead of a transpose, for example for image channels. It also reports columns that a loss
    compares with rows, two arrays indexed by row and column in different order, gradient penalties
    whose norm is not per sample, anomaly scores per feature, and swapped widths and heights.

    ## Why it matters
    There is no error, because the sizes fit. The model mixes samples instead of positions,
    attention cannot select a position, or the printed accuracy is meaningless.

    ## Example
    ```python
    attention = (q @ k.mT).softmax(dim=-2) @ v  # bad
    attention = (q @ k.mT).softmax(dim=-1) @ v  # good
    ```

    ## What to do
    Specify the intended axis: `batch_first=True`, `softmax(dim=-1)` over keys, `argmax(dim=1)` over
    classes.

    ## When it is wrong
    Scores are laid out as (keys, queries). Batches have one sample, or there is no batch axis. One
    of two arrays is intentionally the transpose of the other.

    ## How to confirm
    - Change one sample of a batch and check that the outputs of the others do not change.
    """
    yield from concluded(misread_axes, facts, _MISTAKES)
