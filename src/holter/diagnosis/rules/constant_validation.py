"""The validation loss stays the same bit for bit while the model is trained."""

from collections.abc import Iterator, Mapping

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.facts.validation import trained_functions
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, UPDATE_RATIO, VAL_LOSS, WEIGHT_TOTAL_NORM

_MOVED = 1e-4  # relative change of the weights that shows in any loss
_NOTHING_LEFT = 1e-5  # of the training loss at first: losses this small may be equal by rounding


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS, VAL_LOSS),
)
def constant_validation(facts: Facts, *, min_passes: int = 4) -> Iterator[Verdict]:
    """The validation loss stays the same bit for bit while the model is trained.

    ## What it does
    Looks for validation losses that are bit for bit the same on the last `min_passes` passes or
    more, while weights move or the training loss falls clearly. Losses of 0 or nearly so are left
    out, and values handed to `log()` count only if they never changed at all: there an old one may
    be given again on purpose. So are losses by another function than that of training, where one
    by that function is there as well and changes: they may be those of a baseline.

    ## Why it matters
    The same number means the same weights on the same data: what is validated is not what is
    trained. A copy made before training, another model, a checkpoint loaded each time, or a metric
    that is computed once and printed for ever. Early stopping then stops by chance.

    ## What to do
    See that the validation code is given the model that the optimizer trains: no
    `copy.deepcopy(model)` or `load_state_dict` from before, no exported or traced copy, no averaged
    weights that are never updated.

    ## When it is wrong
    A frozen reference, such as a teacher or the best checkpoint so far, that is evaluated beside
    the model on purpose. A model whose output is the same whatever its weights, as after all its
    units have died.

    ## How to confirm
    - Print `id(model)` and the norm of one weight in the training loop and in the validation.
    - Set one weight of the model to 0 by hand before a validation: the loss has to change.
    """
    losses = {owner: loss for owner, loss in facts.run[VAL_LOSS].items() if len(loss)}
    if not losses:
        yield constant_validation.not_examined("no validation loss was read")
    for owner, loss in losses.items():
        if _is_beside(facts, owner, losses):
            yield constant_validation.clear(
                f"the validation loss{of(owner)} is not that of training, which changes"
            )
        else:
            yield _judge(facts, owner, loss, min_passes)


def _is_beside(facts: Facts, owner: str, losses: Mapping[str, Series]) -> bool:
    """Whether a loss by another function than that of training stands beside one by that."""
    trained = trained_functions(facts)
    own = [losses[each] for each in trained if each in losses]
    return owner not in trained and any(np.ptp(each.values) > 0 for each in own)


def _judge(facts: Facts, owner: str, loss: Series, min_passes: int) -> Verdict:
    if len(loss) < min_passes:
        return constant_validation.not_examined(
            f"{len(loss)} of the {min_passes} validation passes needed{of(owner)}"
        )
    value = float(loss.values[-1])
    same = trailing(loss.values == loss.values[-1])
    throughout = same == len(loss)
    if same < min_passes or (owner == "" and not throughout):
        return constant_validation.clear(
            f"the validation loss{of(owner)} took {len(np.unique(loss.values))} values in"
            f" {len(loss)} passes"
        )
    first, last = int(loss.steps[-same]), loss.last
    began, level = _training_levels(facts, first, last)
    if abs(value) < _NOTHING_LEFT * abs(began):
        return constant_validation.clear(f"the validation loss{of(owner)} is {value:.2g}: no more")
    moved = _moved(facts, first, last)
    falls = began - level > 0.1 * abs(began)
    if moved is None and not falls:
        return constant_validation.not_examined(
            f"the validation loss{of(owner)} is the same on {same} passes, but whether the weights"
            " moved meanwhile is not known"
        )
    if moved is not None and moved < _MOVED:
        return constant_validation.clear(
            f"the weights stand still as well: they moved by {moved:.1g} in {same} passes"
        )
    return constant_validation.finding(
        f"the validation loss{of(owner)} is {value:.6g} bit for bit on"
        f" {'all' if throughout else 'the last'} {same} passes (steps {first} to {last}) while"
        f" the model is trained",
        confidence=Confidence.CERTAIN if moved is not None and throughout else Confidence.LIKELY,
        onset=first,
        evidence=(
            Evidence(VAL_LOSS, (first, last), f"{value:.6g} on each of {same} passes", owner),
            Evidence(LOSS, (first, last), f"{began:.4g} at first, {level:.4g} at last"),
            *_weight_evidence(facts, first, last, moved),
        ),
        fix="validate the model that the optimizer trains, not a copy or checkpoint of before",
    )


def _training_levels(facts: Facts, first: int, last: int) -> tuple[float, float]:
    """The training loss at its beginning, and over the last third of these steps."""
    owner = next(iter(facts.run[LOSS]))
    values, late = (
        readings(facts, LOSS, owner),
        readings(facts, LOSS, owner, last - (last - first) // 3),
    )
    if not len(values):
        return 0.0, 0.0
    return float(np.median(values[:5])), midmean(late) if len(late) else float(values[-1])


def _moved(facts: Facts, first: int, last: int) -> float | None:
    """How far the weights moved between two passes, relative to their size; None if unknown."""
    if UPDATE_RATIO in facts.run:
        rows = facts.run[UPDATE_RATIO].rows(first + 1, last)
        ratios = rows.values[rows.present & np.isfinite(rows.values)]
        if len(ratios):  # steps in all directions add up by their squares
            return float(np.percentile(ratios, 75) * np.sqrt(last - first))
    moved = []
    for series in facts.run[WEIGHT_TOTAL_NORM].values() if WEIGHT_TOTAL_NORM in facts.run else ():
        norms = series.values[(series.steps >= first) & (series.steps <= last)]
        if len(norms) > 1 and np.isfinite(norms).all() and norms.max() > 0:
            moved.append(float(np.ptp(norms) / norms.max()))
    return max(moved, default=None)


def _weight_evidence(
    facts: Facts, first: int, last: int, moved: float | None
) -> Iterator[Evidence]:
    if moved is not None:
        signal = UPDATE_RATIO if UPDATE_RATIO in facts.run else WEIGHT_TOTAL_NORM
        owner = next(iter(facts.run[signal]))
        yield Evidence(signal, (first, last), f"the weights moved by about {moved:.1g}", owner)
