"""Training and validation share groups or time ranges that reveal the target."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_KEY_SCORE, DATASET_KEY_SHARED


@dataclass(frozen=True, slots=True)
class Relation:
    """A column by which validation samples have relatives in training."""

    trial: str
    shared: float
    score: float
    without: float
    permuted: float

    @property
    def is_group(self) -> bool:
        """Whether relatives have the same value; otherwise a near one."""
        return self.trial.startswith("group ")

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.trial.partition(" ")[2]

    @property
    def lost(self) -> float:
        """What leaving relatives out costs beyond what leaving out others costs."""
        return self.permuted - self.without


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(DATASET_KEY_SCORE, DATASET_KEY_SHARED),
    preview=True,
)
def related_splits(
    facts: Facts,
    *,
    min_shared: Annotated[float, "share of validation with relatives in training"] = 0.5,
    min_score: Annotated[float, "score of the nearest training input"] = 0.5,
    min_lost: Annotated[float, "loss of that score without relatives"] = 0.3,
    likely_lost: Annotated[float, "share of the score whose loss makes it likely"] = 0.8,
) -> Iterator[Verdict]:
    """Training and validation share groups or time ranges that reveal the target.

    ## What it does
    Predicts each validation target from the nearest training input, with and without the training
    samples of the same group (a column whose values several samples share, such as a person) or of
    about the same time. It reports a column if the prediction fails without its related samples,
    while leaving out as many random samples changes nothing.

    ## Why it matters
    The model recognises the person, scene or hour and repeats its target. Validation looks good;
    on a new person or a later time the model fails.

    ## Example
    ```python
    train, valid = random_split(visits, [0.8, 0.2])                                            # bad
    train, valid = Subset(visits, where(patient < 80)), Subset(visits, where(patient >= 80))  # good
    ```

    ## What to do
    Split by group, so that all samples of a person, document or recording are in one split, for
    instance with scikit-learn's `GroupShuffleSplit`. Split by time where the model will predict the
    future: train on the past, leave a gap, validate on what follows.

    ## When it is wrong
    The model will only ever see known groups, or fill gaps between known times: then a random split
    is right. Leaks that nearest neighbours do not show, because of noise or too many columns, are
    missed.

    ## How to confirm
    - Split by that column and compare the validation losses.
    - `holter try data` lists both scores of every column.
    """
    found = [*_relations(facts)]
    related = [
        relation
        for relation in found
        if relation.shared >= min_shared
        and relation.score >= min_score
        and relation.lost >= min_lost
    ]
    if related:
        worst = max(related, key=lambda relation: (relation.is_group, relation.lost))
        clear = worst.lost >= likely_lost * worst.score and worst.is_group
        yield related_splits.finding(
            _summary(worst),
            confidence=Confidence.LIKELY if clear else Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(
                    DATASET_KEY_SCORE,
                    (0, 2),
                    f"score of the nearest training input {worst.score:.2g}, {worst.without:.2g}"
                    f" without related samples, {worst.permuted:.2g} without as many random ones",
                    worst.trial,
                ),
            ),
            fix=_fix(worst),
        )
    else:
        most = max(found, key=lambda relation: relation.lost)
        yield related_splits.clear(
            f"{len(found)} possible group or time columns; leaving out related samples costs at"
            f" most {max(most.lost, 0.0):.2g} of the score of the nearest input ({most.name})"
        )


def _relations(facts: Facts) -> Iterator[Relation]:
    for trial, scores in facts.run[DATASET_KEY_SCORE].items():
        shared = measured(facts.run, DATASET_KEY_SHARED, trial)
        if shared is not None and len(scores) == 3:
            yield Relation(trial, shared, *scores.values.tolist())


def _summary(worst: Relation) -> str:
    if worst.is_group:
        what = f"{percent(worst.shared)} of the validation samples share {_column(worst)} with"
        what, left = f"{what} training samples", "of the same value"
    else:
        what = f"validation lies between training samples in time ({_column(worst)})"
        left = "of about the same time"
    return (
        f"{what}: the nearest training input predicts the target with a score of"
        f" {worst.score:.2g}, and {worst.without:.2g} without those {left}"
    )


def _column(worst: Relation) -> str:
    return worst.name if worst.name.startswith("column ") else f"`{worst.name}`"


def _fix(worst: Relation) -> str:
    if worst.is_group:
        return f"split by {_column(worst)}: keep all samples with the same value in one split"
    return "split by time: train on the past, leave a gap, validate on what follows"
