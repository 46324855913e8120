"""Inputs and their dense targets are flipped or rotated differently."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REFETCH_JUDGED, REFETCH_TORN


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(REFETCH_TORN, REFETCH_JUDGED),
    preview=True,
)
def torn_pairs(
    facts: Facts, *, share: Annotated[float, "share of pairs of versions that is reported"] = 0.2
) -> Iterator[Verdict]:
    """Inputs and their dense targets are flipped or rotated differently.

    ## What it does
    Uses the experiment `augmentation`, which fetches the same training samples up to 8 times and
    determines the flip or 90-degree rotation between successive versions of the image and of its
    dense target (mask, depth map, high-resolution image). It reports if the two differ.

    ## Why it matters
    The target does not match the pixels that the model sees. The model learns a blurred mean of the
    orientations, or nothing at all, without any error.

    ## Example
    ```python
    image = RandomHorizontalFlip()(image)                       # bad
    if flip: image, mask = image.flip(-1), mask.flip(-1)        # good
    ```

    ## What to do
    Make each random decision once, and apply it to the input and to the target:
    `if random.random() < 0.5: image, mask = image.flip(-1), mask.flip(-1)`. Transforms of
    `torchvision.transforms.v2` and albumentations do this if both are passed in one call.

    ## When it is wrong
    The target does not depend on the orientation of the input: a canonical view of the object, for
    example. A flip swaps the left and right classes of an otherwise symmetric mask. The second
    array of a sample is another input, not a target.

    ## How to confirm
    - Plot `dataset[0]` eight times, the mask over the image.
    - Train for a while without the flips: the training loss must fall further.
    """
    torn = measured(facts.run, REFETCH_TORN, "train")
    judged = measured(facts.run, REFETCH_JUDGED, "train")
    if torn is None or judged is None:
        yield torn_pairs.not_examined("no flips of training samples with dense targets were seen")
        return
    if torn < share:
        yield torn_pairs.clear(
            f"input and target get the same flip or rotation in {percent(1 - torn)} of"
            f" {judged:.0f} pairs of versions of training samples"
        )
        return
    yield torn_pairs.finding(
        "random flips or rotations differ between input and target of a training sample: in"
        f" {percent(torn)} of {judged:.0f} pairs of versions in which one of them moves, instead"
        " of 0 %",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(
                REFETCH_TORN,
                (0, 0),
                f"{percent(torn)} of {judged:.0f} pairs of versions of `dataset[i]`",
                "train",
            ),
        ),
        fix="make the random decision once and apply it to both: `if random.random() < 0.5: image,"
        " mask = image.flip(-1), mask.flip(-1)`",
    )
