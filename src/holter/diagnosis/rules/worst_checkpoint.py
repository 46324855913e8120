"""The restored weights are those of the worst validation."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.evaluations import evaluations
from holter.diagnosis.facts.figures import Meaning, metrics_shown
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number
from holter.record.evaluations import PRINTED, split_of
from holter.record.events import StateLoaded
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, VAL_LOSS

_GOOD = 0.5  # of the range of a metric: values that are nearer to the best one are not bad


@dataclass(frozen=True, slots=True)
class _Course:
    """A metric of held-out data, by step."""

    name: str
    steps: Values
    values: Values
    is_error: bool

    def at(self, step: int) -> float | None:
        found = self.values[self.steps == step]
        return float(found[-1]) if len(found) else None

    @property
    def best(self) -> float:
        return float(self.values.min() if self.is_error else self.values.max())

    @property
    def worst(self) -> float:
        return float(self.values.max() if self.is_error else self.values.min())

    @property
    def best_step(self) -> int:
        return int(self.steps[(self.values == self.best).argmax()])

    @property
    def gain(self) -> float:
        """By how much the best value is better; of errors and losses, as a share."""
        apart = abs(self.best - self.worst)
        return apart / max(abs(self.worst), 1e-30) if self.is_error else apart


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def worst_checkpoint(
    facts: Facts,
    *,
    min_passes: Annotated[int, "evaluations needed"] = 4,
    min_gain: Annotated[float, "by how much the best evaluation is better than the worst"] = 0.05,
    near: Annotated[float, "share of the way from the best to the worst that makes a hint"] = 0.9,
) -> Iterator[Verdict]:
    """The restored weights are those of the worst validation.

    ## What it does
    Matches the weights that `load_state_dict` restores at the end with those of an earlier
    evaluation. It reports if a held-out loss or metric was worst there and no other was good. It is
    a hint if it was nearly the worst.

    ## Why it matters
    The training may be fine, but its worst model is tested and used.

    ## Example
    ```python
    if val_error > best: best, state = val_error, copy.deepcopy(model.state_dict())   # bad
    if val_error < best: best, state = val_error, copy.deepcopy(model.state_dict())   # good
    ```

    ## What to do
    Check the comparison that selects the weights: lower is better for losses and errors, higher for
    accuracies. Initialise with `float("inf")` or `-float("inf")`.

    ## When it is wrong
    Weights are selected by a metric that is neither printed nor logged, and that is best where all
    others are worst.

    ## How to confirm
    - Print the metric of the restored weights next to the best one of the run.
    """
    if not facts.run.steps:
        yield worst_checkpoint.not_examined("no step was recorded")
        return
    last = max((losses.last for losses in facts.run[LOSS].values() if len(losses)), default=0)
    loads = [
        event
        for event in facts.run.events_of(StateLoaded)
        if event.what.of_step is not None and event.step >= last
    ]
    if not loads:
        yield worst_checkpoint.not_examined("no weights of an earlier evaluation were restored")
        return
    step, where = loads[-1].what.of_step, loads[-1].what.where
    where = f", at {where}" if where else ""
    assert step is not None
    courses = [
        course
        for course in _courses(facts)
        if len(course.values) >= min_passes and course.at(step) is not None
    ]
    told = [course for course in courses if course.gain >= min_gain]
    if not told:
        yield worst_checkpoint.not_examined("no held-out metric distinguishes the evaluations")
        return
    shares = {course.name: _badness(course, step) for course in told}
    bad = max(told, key=lambda course: (shares[course.name], course.gain))
    kept = bad.at(step)
    assert kept is not None
    both = f"{bad.name} was {number(kept)} after step {step}, whose weights are restored"
    is_worst = shares[bad.name] == 1
    if shares[bad.name] < near or min(shares.values()) < _GOOD:
        yield worst_checkpoint.clear(f"{both}; the best value is {number(bad.best)}")
        return
    yield worst_checkpoint.finding(
        f"{both}: {'' if is_worst else 'nearly '}the worst of {len(bad.values)} evaluations; the"
        f" best was {number(bad.best)}, after step {bad.best_step}",
        confidence=Confidence.LIKELY if is_worst else Confidence.HINT,
        onset=step,
        evidence=(
            Evidence(
                LOSS,
                (step, last),
                f"weights of step {step} are loaded after the last step{where}",
                next(iter(facts.run[LOSS])),
            ),
        ),
        fix="keep the weights of the best evaluation: compare with `<` for losses and errors and"
        " with `>` for accuracies",
    )


def _badness(course: _Course, step: int) -> float:
    """Return where a value lies between the best (0) and the worst one (1)."""
    value = course.at(step)
    return 0.0 if value is None else abs(value - course.best) / abs(course.worst - course.best)


def _courses(facts: Facts) -> Iterator[_Course]:
    if VAL_LOSS in facts.run:
        for evaluation in evaluations(facts):
            losses = evaluation.losses
            if evaluation.split != "train":
                kept = np.isfinite(losses.values)
                steps, values = losses.steps[kept].astype(float), losses.values[kept].astype(float)
                yield _Course("the validation loss", steps, values, is_error=True)
    for metric in metrics_shown(facts.run):
        name = metric.name.removeprefix(PRINTED)
        if split_of(name) in ("validation", "test") and len(metric.values):
            is_error = metric.meaning is Meaning.ERROR
            yield _Course(name, metric.steps, metric.values, is_error=is_error)
