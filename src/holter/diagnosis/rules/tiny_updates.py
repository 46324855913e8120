"""Updates are so small that the weights hardly move."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Sample
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, UPDATE_RATIO

_FEWEST = 10  # sampled updates
_USUAL = 1e-3  # update of a weight in most trainings that go well
_LEARNED = 0.8  # share of what a constant answer gives, under which a model knows something
_NO_FALL = 0.05  # share of the loss that a loss which hardly falls has lost


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(UPDATE_RATIO, LOSS),
)
def tiny_updates(facts: Facts, *, limit: float = 1e-5, reach: float = 0.1) -> Iterator[Verdict]:
    """Updates are so small that the weights hardly move.

    ## What it does
    Takes the change of each weight matrix in one step over its norm, and the median of that over
    all matrices and over the steps at which the learning rate was at least half of its peak. It
    speaks where that is under `limit`, and the loss fell by less than a twentieth. Up to ten times
    `limit` it speaks too, if the loss is still no better than a constant answer. In either case all
    steps together must have moved the weights by less than `reach` of themselves. Updates of
    exactly zero are left to other rules, and a loss that began far under what a constant answer
    gives is that of a model which had learned before.

    ## Why it matters
    At a millionth a step it takes a million steps to change a weight by its own size. The loss
    falls, in a straight line and by next to nothing, and looks like a model that cannot learn.

    ## What to do
    Raise the learning rate tenfold until weights change by about a thousandth in a step. SGD needs
    rates a hundred times those of Adam: one copied from a recipe for Adam is the usual cause.

    ## When it is wrong
    Careful fine-tuning of a model that is good already moves little on purpose; that is told where
    a constant answer is known. Gradients that are
    small for a reason of their own, such as a tiny clipping limit or saturated units, make small
    updates as well; other findings say so.

    ## How to confirm
    - Repeat the first 100 steps with a hundred times the learning rate: the loss should fall.
    - Sweep the learning rate upwards within one run and see where the loss begins to fall.
    """
    names = [each.name for each in facts.layers]
    ratios = _at_full_rate(facts, facts.sample(UPDATE_RATIO, names or None))
    typical = ratios.typical()
    typical = typical[np.isfinite(typical)]
    if len(typical) < _FEWEST:
        yield tiny_updates.not_examined(f"{len(typical)} of the {_FEWEST} sampled updates needed")
        return
    size, travelled = float(np.median(typical)), float(np.mean(typical)) * facts.run.steps
    if size == 0 or size >= 10 * limit or travelled >= reach:
        yield tiny_updates.clear(f"the usual weight changes by {size:.1e} a step")
        return
    result = facts.outcome
    if result is None:
        yield tiny_updates.not_examined(
            f"weights change by {size:.1e} a step, but whether the loss fell cannot be told"
        )
        return
    fell = result.fall > _NO_FALL and not result.bad
    if fell or (size >= limit and not result.at_chance):
        yield tiny_updates.clear(f"the usual weight changes by {size:.1e} a step; {result.says}")
        return
    if _had_learned(facts):
        yield tiny_updates.clear(
            f"the usual weight changes by {size:.1e} a step, and the model had learned before"
        )
        return
    rate = facts.learning_rate
    factor = 10 ** round(float(np.log10(_USUAL / size)))
    evidence = [
        Evidence(
            UPDATE_RATIO,
            (int(ratios.steps[0]), int(ratios.steps[-1])),
            f"the usual weight changes by {size:.1e} of itself a step, by {travelled:.1e} in"
            f" all {facts.run.steps} steps; about {_USUAL:g} a step is common",
            ratios.owners[0],
        ),
        result.evidence,
    ]
    if rate:
        evidence.append(Evidence(LR, (0, facts.run.steps - 1), f"learning rate {rate}"))
    yield tiny_updates.finding(
        f"each step changes the usual weight by only {size:.1e} of itself"
        + (f" at a learning rate of {rate}" if rate else "")
        + f", and {result.says}",
        confidence=Confidence.LIKELY,
        onset=int(ratios.steps[0]),
        evidence=evidence,
        fix=f"raise the learning rate about {factor:g}-fold"
        + (f" (now {rate})" if rate else "")
        + ", then look whether updates are near a thousandth of the weights",
    )


def _had_learned(facts: Facts) -> bool:
    """Whether the first losses were far under what a constant answer gives."""
    curve, constant = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(constant, str) or not len(curve):
        return False
    first = float(np.median(curve.values[:_FEWEST]))
    return first < _LEARNED * constant.level * constant.scale


def _at_full_rate(facts: Facts, ratios: Sample) -> Sample:
    """The samples at which the learning rate was at least half of its peak, and no step skipped."""
    kept = ~np.isin(ratios.steps, facts.skipped_steps)
    if LR in facts.run:
        rows = facts.run[LR].rows()
        rates = np.where(rows.present & np.isfinite(rows.values), rows.values, 0)
        highest = rates.max(axis=1, initial=0)
        at = np.searchsorted(rows.steps, ratios.steps, "right") - 1
        known = np.where(at >= 0, highest[np.maximum(at, 0)], highest.max(initial=0))
        kept &= known >= highest.max(initial=0) / 2
    return Sample(ratios.steps[kept], ratios.owners, ratios.values[kept])
