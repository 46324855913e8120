"""The source reorders only one of two paired arrays."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "unpaired shuffle": Mistake(
        "`{code}` shuffles one of two paired arrays; the other keeps its order or is shuffled by a"
        " different permutation",
        "draw one permutation and index every array by it: `order = torch.randperm(len(x));"
        " x, y = x[order], y[order]`",
    ),
    "sorted forward": Mistake(
        "`{code}` sorts the rows of the batch and returns the outputs in that order: they are"
        " compared with the targets of other rows",
        "pass `enforce_sorted=False` to `pack_padded_sequence`, or return"
        " `outputs[torch.argsort({subject})]`",
    ),
    "sorted alone": Mistake(
        "`{code}` sorts only one part of the samples by length; the other parts keep their order",
        "sort the samples before unpacking them: `batch = sorted(batch, key=lambda sample:"
        " len(sample[0]), reverse=True)`",
    ),
    "flipped alone": Mistake(
        "`{code}` flips the image at random, but not its mask or boxes",
        "flip both with the same random decision: `if flip: image, mask = image.flip(-1),"
        " mask.flip(-1)`",
    ),
    "flipped classes": Mistake(
        "`{code}` mirrors images at random although the classes are {subject}: a mirrored image"
        " belongs to a different class, or to none",
        "remove the flip, or swap the label with it",
    ),
    "mirrored otherwise": Mistake(
        "`{code}` mirrors {subject} of the boxes, but flips the image along the other axis",
        "mirror x if the last axis of the image is flipped: `box[:, 0] = width - box[:, 0]`",
    ),
    "shuffled cache": Mistake(
        "`{code}` stores results in the order of the shuffled `{subject}`, but they are matched to"
        " rows in data set order",
        "compute them with `shuffle=False`",
    ),
    "shifted diagonal": Mistake(
        "`{code}`: `{subject}` is column 0 of the logits, so the positive of row i is in column i"
        " + 1, but the labels say column i",
        "count the columns before the diagonal: `labels = torch.arange(len(q)) + 1`",
    ),
    "targets off diagonal": Mistake(
        "`{code}` uses `{subject}` as the labels of the similarity rows, but the positive of row i"
        " is in column i",
        "use the row index: `labels = torch.arange(len(logits), device=logits.device)`",
    ),
    "apart in item": Mistake(
        "`{code}` reads one array at a permuted index and the other at `{subject}` itself",
        "read both at the same index: `j = self.order[{subject}]; return self.x[j], self.y[j]`",
    ),
    "fresh noise": Mistake(
        "`{code}` mixes one draw of noise into the input, but the target `{subject}` is a separate"
        " draw: the model cannot predict it",
        "mix `{subject}` itself into the input",
    ),
    "weighed otherwise": Mistake(
        "`{code}` swaps the mixing weights: with `{subject}`, the sample with the larger share of"
        " the input gets the smaller weight in the target",
        "use the same weights for both: `{subject}` for `x` and `y`, `1 - {subject}` for `x[p]`"
        " and `y[p]`",
    ),
    "unexecuted action": Mistake(
        "`{code}` stores `{subject}` with the reward and next state of the executed action, which"
        " exploration may have replaced",
        "store the action passed to `env.step`",
    ),
    "shuffled passes": Mistake(
        "`{code}` is computed in a second pass over the shuffled `{subject}`: its rows are in a"
        " different order than those of the first pass",
        "compute both in one pass, or pass `shuffle=False` to the loader",
    ),
    "sides kept": Mistake(
        "`{code}` mirrors `{subject}` without swapping left and right points: each is trained on"
        " the wrong side",
        "swap them as well: `{subject} = {subject}[[1, 0, ...]]`",
    ),
    "labels of stored order": Mistake(
        "`{code}` is in data set order, but the predictions are in the order of a shuffling loader",
        "collect labels and predictions from the same batches, or set `shuffle=False`",
    ),
    "sorted ids": Mistake(
        "`{code}` numbers `{subject}` in sorted order while features and labels are in file order:"
        " edges connect the wrong rows",
        "number them in file order: `enumerate({subject})`",
    ),
    "mixed with another": Mistake(
        "`{code}` draws a second permutation instead of `{subject}`, which mixed the inputs",
        "use the same one: `y[{subject}]`",
    ),
    "partly sorted": Mistake(
        "`{code}` combines arrays that were sorted with one that was not ({subject})",
        "reorder all of them with the same indices",
    ),
    "split apart": Mistake(
        "`{code}` splits `{subject}` with different random numbers than the inputs",
        "split both in one call: `train_test_split(x, y)`",
    ),
    "unpacked otherwise": Mistake(
        "`{code}` unpacks {subject}; `train_test_split(x, y)` returns both parts of `x` first",
        "`x_train, x_test, y_train, y_test = train_test_split(x, y)`",
    ),
    "order of views": Mistake(
        "`{code}` splits `{subject}` in a different order than its views were concatenated: each"
        " part holds both views, and pairs belong to different samples",
        "concatenate them with `torch.cat([a, b])` and split with `chunk(2)`, or stack them and"
        " take `{subject}[0::2]` and `{subject}[1::2]`",
    ),
    "cache by number": Mistake(
        "`{code}` caches `{subject}` by batch number, but the loader reshuffles in every epoch:"
        " results belong to other samples",
        "compute them in the step, or cache them by sample index",
    ),
    "unpaired batch": Mistake(
        "`{code}` takes rows of `{subject}` in stored order but shuffled rows of the other array",
        "index both by the same permutation",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def separated_pairs(facts: Facts) -> Iterator[Verdict]:
    """The source reorders only one of two paired arrays.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports two arrays of one data
    set shuffled or indexed by different permutations, a collate function that sorts only one part
    of the samples by length, an image flipped without its mask or boxes or along a different axis,
    and results of a shuffled loader matched to rows in data set order. It also reports in-batch
    labels that ignore a column before the diagonal, a replay buffer that stores the greedy instead
    of the executed action, noise that is drawn again as a target, inputs and targets mixed with
    swapped weights, comparisons of two passes over a shuffled loader, keypoints mirrored without
    swapping left and right, and labels in a different order than the predictions.

    ## Why it matters
    Inputs and targets no longer belong together. The loss stays near that of the best constant
    prediction, or has a floor that no model can beat.

    ## Example
    ```python
    rng.shuffle(images); rng.shuffle(labels)                                        # bad
    order = rng.permutation(len(images)); images, labels = images[order], labels[order]  # good
    ```

    ## What to do
    Draw one permutation, and index every array by it. Sort samples before unpacking them. Apply one
    random decision to everything that shares the geometry.

    ## When it is wrong
    Targets are shuffled on purpose, as in a permutation test. Both calls restore the same random
    state first.

    ## How to confirm
    - Print a few inputs with their targets after the statement.
    """
    yield from concluded(separated_pairs, facts, _MISTAKES)
