"""Two classes are confused at chance level although all others are distinguished."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import portion
from holter.record.events import ClassCounts
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import VAL_BALANCED_ACCURACY


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two classes: their targets, those predicted as one of the two, and those correct."""

    labels: tuple[int, int]
    targets: int
    inside: int
    right: int
    others: (
        float  # share of the targets of other classes that are right, or confused with one class
    )


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(VAL_BALANCED_ACCURACY,), preview=True)
def indistinct_classes(
    facts: Facts,
    *,
    min_targets: Annotated[int, "targets of either class needed"] = 20,
    max_right: Annotated[float, "share of a pair that is right, of what is predicted in it"] = 0.6,
    min_inside: Annotated[float, "share of a pair's targets that is predicted as one of it"] = 0.9,
    min_others: Annotated[float, "share of other targets that must be right"] = 0.9,
) -> Iterator[Verdict]:
    """Two classes are confused at chance level although all others are distinguished.

    ## What it does
    Looks at the confusions of the last validation pass. It reports two classes whose samples are
    predicted as one of the two, but no better than at random, while nearly all samples of the other
    classes are correct.

    ## Why it matters
    The model does not receive what distinguishes the two: an augmentation makes them equal, their
    labels were mixed up, or preprocessing removes the difference.

    ## Example
    ```python
    augment = [RandomHorizontalFlip(), RandomCrop(28)]   # bad
    augment = [RandomCrop(28)]                           # good
    ```

    ## What to do
    Look at samples of both classes as the training loader delivers them. Remove flips, rotations
    and crops that turn one class into the other, or change the label with them. Check that both
    labels are assigned by the same rule.

    ## When it is wrong
    Two classes that the inputs cannot distinguish.

    ## How to confirm
    - Train without augmentation: does the model distinguish both classes?
    - Compare the mean training input of both classes: do they differ?
    """
    measured = facts.measured_validation
    if isinstance(measured, str) or measured.last.classes is None:
        yield indistinct_classes.not_examined(
            measured if isinstance(measured, str) else "validation targets are not of classes"
        )
        return
    pair = _worst(measured.last.classes, min_targets)
    if pair is None:
        yield indistinct_classes.not_examined("fewer than three classes with enough targets")
        return
    both = f"classes {pair.labels[0]} and {pair.labels[1]}"
    says = (
        f"{pair.right} of {pair.inside} targets of {both} are right; {portion(pair.others)} of"
        " those of other classes are right, or are confused within another pair"
    )
    is_told = pair.right > max_right * pair.inside or pair.inside < min_inside * pair.targets
    if is_told or pair.others < min_others:
        yield indistinct_classes.clear(says)
        return
    step = measured.passes[-1].step
    yield indistinct_classes.finding(
        says,
        confidence=Confidence.HINT,
        onset=measured.passes[0].step,
        evidence=(
            Evidence(
                VAL_BALANCED_ACCURACY,
                (measured.passes[0].step, step),
                f"{both} are predicted as each other {pair.inside - pair.right} times",
                measured.owner,
            ),
        ),
        fix=f"look at training samples of {both}, as the loader delivers them: remove"
        " augmentations that turn one into the other",
    )


def _worst(counts: ClassCounts, min_targets: int) -> _Pair | None:
    """Return the pair of classes that are predicted as each other most often."""
    each = {one.label: one for one in counts.each if one.support >= min_targets}
    times = {(one.target, one.predicted): one.times for one in counts.confusions}
    if len(each) < 3:
        return None
    pairs = {
        (low, high): times.get((low, high), 0) + times.get((high, low), 0)
        for low in each
        for high in each
        if low < high
    }
    labels = max(pairs, key=lambda pair: pairs[pair])
    first, second = each[labels[0]], each[labels[1]]
    right, targets = first.right + second.right, first.support + second.support
    rest = [one for one in counts.each if one.label not in labels]
    told = sum(one.right for one in rest) + _in_other_pairs([one.label for one in rest], times)
    others = told / max(sum(one.support for one in rest), 1)
    return _Pair(labels, targets, right + pairs[labels], right, others)


def _in_other_pairs(labels: Sequence[int], times: Mapping[tuple[int, int], int]) -> int:
    """Return how many targets are predicted as the other class of a pair of their own.

    Classes are a pair if each is predicted as the other more often than as any third one.
    """
    nearest = {
        label: max(
            (n for n in labels if n != label), key=lambda n: times.get((label, n), 0), default=label
        )
        for label in labels
    }
    return sum(
        times.get((label, other), 0)
        for label, other in nearest.items()
        if other != label and nearest[other] == label
    )
