"""The source reorders one of two arrays that belong together."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "unpaired shuffle": Mistake(
        "`{code}` shuffles one of two arrays that belong together; the other keeps its order or is"
        " shuffled by another permutation",
        "draw one permutation and index every array by it: `order = torch.randperm(len(x));"
        " x, y = x[order], y[order]`",
    ),
    "sorted forward": Mistake(
        "`{code}` sorts the rows of the batch, and the outputs are returned in that order: they are"
        " compared with the targets of other rows",
        "pass `enforce_sorted=False` to `pack_padded_sequence`, or return"
        " `outputs[torch.argsort({subject})]`",
    ),
    "sorted alone": Mistake(
        "`{code}` sorts one part of the samples by length; the other parts keep their order",
        "sort the samples before they are taken apart: `batch = sorted(batch, key=lambda sample:"
        " len(sample[0]), reverse=True)`",
    ),
    "flipped alone": Mistake(
        "`{code}` flips the image at random; its mask or boxes stay as they are",
        "flip both by the same draw: `if flip: image, mask = image.flip(-1), mask.flip(-1)`",
    ),
    "flipped classes": Mistake(
        "`{code}` mirrors images at random, and the classes are {subject}: a mirrored image of one"
        " is an image of another class, or of none",
        "remove the flip, or exchange the label with it",
    ),
    "mirrored otherwise": Mistake(
        "`{code}` mirrors {subject} of the boxes, and the image is flipped along the other axis",
        "mirror x where the last axis of the image is flipped: `box[:, 0] = width - box[:, 0]`",
    ),
    "shuffled cache": Mistake(
        "`{code}` keeps results in the order of `{subject}`, which is shuffled; they are put beside"
        " the rows in the order of the data set",
        "compute them with a loader that has `shuffle=False`",
    ),
    "shifted diagonal": Mistake(
        "`{code}`: `{subject}` is column 0 of the logits, so that the positive of row i is in"
        " column i + 1; the labels say column i",
        "add the columns before the diagonal: `labels = torch.arange(len(q)) + 1`",
    ),
    "targets off diagonal": Mistake(
        "`{code}` scores each row of the similarities against `{subject}`; the positive of row i"
        " is in column i",
        "number the rows: `labels = torch.arange(len(logits), device=logits.device)`",
    ),
    "apart in item": Mistake(
        "`{code}` reads one array at a place of a permutation and the other at `{subject}` itself",
        "read both at the same place: `j = self.order[{subject}]; return self.x[j], self.y[j]`",
    ),
    "fresh noise": Mistake(
        "`{code}` draws noise that is mixed into the input, and the target of the loss is"
        " `{subject}`, which was drawn separately: the model cannot predict it",
        "mix in `{subject}` itself",
    ),
    "weighed otherwise": Mistake(
        "`{code}` weighs targets by `{subject}` the other way round than the inputs: the sample"
        " with the larger share gets the smaller weight",
        "weigh both in the same way: `{subject}` for `x` and `y`, `1 - {subject}` for `x[p]` and"
        " `y[p]`",
    ),
    "unexecuted action": Mistake(
        "`{code}` stores `{subject}` with the reward and the next state of the action that was"
        " executed, which exploration may have replaced",
        "store the action that `env.step` was given",
    ),
    "shuffled passes": Mistake(
        "`{code}` is computed in a second pass over `{subject}`, which is shuffled: its rows are in"
        " another order than those of the first pass",
        "keep both in one pass, or pass `shuffle=False` to the loader",
    ),
    "sides kept": Mistake(
        "`{code}` mirrors `{subject}`, and left and right points keep their places: each is"
        " trained on the other side",
        "exchange them as well: `{subject} = {subject}[[1, 0, ...]]`",
    ),
    "labels of stored order": Mistake(
        "`{code}` is in the order of the data set, and the predictions are in that of a"
        " loader that shuffles",
        "collect labels and predictions from the same batches, or set `shuffle=False`",
    ),
    "sorted ids": Mistake(
        "`{code}` numbers `{subject}` in sorted order, while rows of features and labels are"
        " in the order of the file: edges join other rows",
        "number them in their own order: `enumerate({subject})`",
    ),
    "mixed with another": Mistake(
        "`{code}` draws another permutation than `{subject}`, by which the inputs were mixed",
        "use the same one: `y[{subject}]`",
    ),
    "partly sorted": Mistake(
        "`{code}` combines arrays that were sorted with one that was not ({subject})",
        "reorder all of them by the same indices",
    ),
    "split apart": Mistake(
        "`{code}` splits `{subject}` by other random numbers than the inputs",
        "split both in one call: `train_test_split(x, y)`",
    ),
    "unpacked otherwise": Mistake(
        "`{code}` unpacks {subject}; `train_test_split(x, y)` returns both parts of `x` first",
        "`x_train, x_test, y_train, y_test = train_test_split(x, y)`",
    ),
    "order of views": Mistake(
        "`{code}` divides `{subject}` in another order than its views were joined: each part holds"
        " both views, and pairs are of different samples",
        "join them with `torch.cat([a, b])` and divide with `chunk(2)`, or stack them and take"
        " `{subject}[0::2]` and `{subject}[1::2]`",
    ),
    "cache by number": Mistake(
        "`{code}` reads `{subject}` in the order in which the loader first gave its batches: the"
        " loader shuffles again, and results belong to other samples",
        "compute them in the step, or keep them by the index of the sample",
    ),
    "unpaired batch": Mistake(
        "`{code}` takes rows of `{subject}` in their stored order, beside shuffled rows of"
        " the other array",
        "index both by the same permutation",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def separated_pairs(facts: Facts) -> Iterator[Verdict]:
    """The source reorders one of two arrays that belong together.

    ## What it does
    Reads the source of the script and of modules beside it. It reports two arrays of one data set
    that are shuffled or indexed by different permutations, a collate function that sorts one part
    of the samples by length, an image that is flipped without its mask or boxes or along another
    axis, and results of a shuffled loader that are put beside the rows in their own order. It also
    reports labels of pairs in a batch that leave out a column before the diagonal, a replay buffer
    that stores the greedy action where exploration has executed another, noise that is drawn again
    as a target, and inputs and targets that are mixed by exchanged weights; two passes over a
    shuffled loader whose results are compared, points that are mirrored without exchanging left and
    right, and labels in another order than the predictions.

    ## Why it matters
    Inputs and targets no longer belong together. The loss stays near that of the best constant
    prediction, or has a floor that no model gets below.

    ## Example
    ```python
    rng.shuffle(images); rng.shuffle(labels)                                        # bad
    order = rng.permutation(len(images)); images, labels = images[order], labels[order]  # good
    ```

    ## What to do
    Draw one permutation, and index every array by it. Sort samples before taking them apart. Apply
    one random draw to everything that has the same geometry.

    ## When it is wrong
    Targets are shuffled on purpose, as the control of a permutation test. Both calls restore the
    same random state first.

    ## How to confirm
    - Print a few inputs with their targets after the statement.
    """
    yield from concluded(separated_pairs, facts, _MISTAKES)
