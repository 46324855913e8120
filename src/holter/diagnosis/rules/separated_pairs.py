"""The source puts inputs into another order than what belongs to them."""

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
    "sorted alone": Mistake(
        "`{code}` sorts one part of the samples by length; the other parts keep their order",
        "sort the samples before they are taken apart: `batch = sorted(batch, key=lambda sample:"
        " len(sample[0]), reverse=True)`",
    ),
    "flipped alone": Mistake(
        "`{code}` flips the image at random; its mask or boxes stay as they are",
        "flip both by the same draw: `if flip: image, mask = image.flip(-1), mask.flip(-1)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def separated_pairs(facts: Facts) -> Iterator[Verdict]:
    """The source puts inputs into another order than what belongs to them.

    ## What it does
    Reads the source of the script and of modules beside it. It reports two arrays of one data set
    that are shuffled by different permutations, a collate function that sorts one part of the
    samples by length, and a random flip of an image without its mask or boxes.

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
