"""Updates are so large that the weights are replaced rather than adjusted."""

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite, prod, sqrt

import numpy as np

from holter.diagnosis.causes import explained_by
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.gradient_scale import loud_from_birth, sudden_onset
from holter.diagnosis.facts.layers import (
    Layer,
    Matrix,
    Sample,
    inner_activations,
    median,
)
from holter.diagnosis.facts.outcome import CURVES, Outcome
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_SATURATED_FRACTION,
    LOSS,
    LR,
    UPDATE_RATIO,
    WEIGHT_NORM,
)

_HELD = 10  # samples in a row over which the usual update has to be large
_REPLACED = 1.0  # an update of the size of the weight itself
_USUAL = 1e-3  # update of a weight in most trainings that go well
_SMALL = 0.1  # of the root mean square that keeps the size of what goes through a weight
_FEWEST = 20  # losses without which nobody can tell whether harm was done
_GONE = 0.95  # share of dead units from which on a layer is as good as gone
_STUCK = 0.8  # the same for saturated outputs
_MOST = 0.6  # share of what a constant answer gives that is left where little was learned
_POOR = 0.3  # share of the loss that a training of some use has lost


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(UPDATE_RATIO,),
)
def huge_updates(facts: Facts, *, limit: float = 0.1) -> Iterator[Verdict]:
    """Updates are so large that the weights are replaced rather than adjusted.

    ## What it does
    Takes the change of each weight matrix in one step over its norm, and of each sampled step the
    median over all matrices. It speaks where that stayed over `limit` for ten samples in a row and
    did harm: the loss is not finite, ended above its start, came back after a fall, or is no better
    than a constant answer, or a layer of units died or saturated since. Where the loss fell, but by
    less than a third or not under 60 % of what a constant answer gives, this is a hint. Vectors are
    left out, and so are weights that begin at zero or at less than a tenth of what keeps the size
    of their input (one over the root of its width), as embeddings may: they have to grow. Changes
    that are weight decay for the most part are left to collapsed-weights.

    ## Why it matters
    A step follows a slope that holds only nearby. One as large as the weights leads anywhere: the
    loss jumps, units die, activations saturate, values overflow. Adam's first steps have the size
    of the learning rate whatever the gradient, so that one that is too high does its damage within
    ten steps, and the weights it has blown up then hardly move.

    ## What to do
    Lower the learning rate until weights change by about a thousandth in a step. If only the first
    steps are too large, warm the rate up. Clipping bounds a step of SGD, not one of Adam.

    ## When it is wrong
    Weights that begin near zero on purpose. A run that is bad for another reason and whose large
    first steps did no harm: raise `limit` if such steps are usual for you.

    ## How to confirm
    - Repeat the first 100 steps with a hundredth of the learning rate: the loss should fall.
    - Sweep the learning rate upwards within one run and see where the loss turns up.
    """
    layers = facts.layers
    names = [each.name for each in layers if not _born_small(facts, each)]
    ratios = _born_at_zero_left_out(facts.sample(UPDATE_RATIO, names if layers else None))
    result = facts.outcome
    typical = ratios.typical()
    failed = result is not None and not result.finite
    if len(typical) < (1 if failed else _HELD):
        yield huge_updates.not_examined(f"{len(typical)} of the {_HELD} sampled updates needed")
        return
    held = _held(typical)
    size = float(held.max())
    short = failed and len(typical) < _HELD and typical.max() >= _REPLACED
    if size < limit and not short:
        yield huge_updates.clear(
            f"the usual weight changed by at most {size:.1e} a step over {_HELD} samples"
        )
        return
    decay = facts.weight_decay
    if decay is not None and decay.rate > size / 2:
        yield huge_updates.clear(f"most of what weights change by, {size:.2g} a step, is decay")
        return
    if failed and _fell_before(facts):
        yield huge_updates.clear(
            f"weights changed by {size:.2g} a step at most, and the loss fell until it was lost"
        )
        return
    harm = _harm(facts)
    if result is None and harm is None and (_young(facts) or not _compete(facts)):
        yield huge_updates.not_examined(
            f"weights changed by {size:.2g} a step at most; whether that did harm cannot be told"
        )
        return
    fell = result is not None and not result.bad and result.fall > _POOR
    if harm is None and result is not None and fell and not _little_learned(facts):
        yield huge_updates.clear(f"weights changed by {size:.2g} a step at most, but {result.says}")
        return
    yield _finding(facts, ratios, max(size, limit), result, harm)


def _finding(
    facts: Facts, ratios: Sample, size: float, result: Outcome | None, harm: Evidence | None
) -> Verdict:
    typical = ratios.typical()
    limit = min(size, _REPLACED)
    onset = int(ratios.steps[(typical >= min(limit, typical.max())).argmax()])
    worst = ratios.owners[int(np.nanargmax(np.nan_to_num(ratios.values).max(axis=0)))]
    rate = facts.learning_rate
    factor = 10 ** max(1, round(float(np.log10(size / _USUAL))))
    causes = tuple(explained_by(huge_updates.name))
    if loud_from_birth(facts) or sudden_onset(facts, before=0.03):
        causes = CURVES  # gradients came first, and explain the rest
    decay = facts.weight_decay
    if decay is not None and decay.ordinary:
        causes += ("collapsed-weights",)
    evidence = [
        Evidence(
            UPDATE_RATIO,
            (onset, int(ratios.steps[-1])),
            f"the usual weight changed by {size:.2g} of itself a step for {_HELD} samples, at most"
            f" by {typical.max():.2g}; about {_USUAL:g} is common",
            worst,
        ),
        *((result.evidence,) if result is not None and (result.bad or harm is None) else ()),
        *((harm,) if harm is not None else ()),
    ]
    bad = result is not None and result.bad
    said = harm.says if harm is not None else "whether the loss fell cannot be told"
    if result is not None and (bad or harm is None):
        said = result.says
    if rate:
        evidence.append(Evidence(LR, (0, facts.run.steps - 1), f"learning rate {rate}"))
    return huge_updates.finding(
        f"each step changes the usual weight by {size:.2g} of itself"
        + (f" at a learning rate of {rate}" if rate else "")
        + f", and {said}",
        confidence=Confidence.LIKELY if bad or harm is not None else Confidence.HINT,
        severity=Severity.ERROR if result is not None or harm is not None else Severity.WARNING,
        onset=onset,
        evidence=evidence,
        fix=f"lower the learning rate about {factor:g}-fold"
        + (f" (now {rate})" if rate else "")
        + ", then look whether updates are near a thousandth of the weights",
        explains=causes,
    )


def _harm(facts: Facts) -> Evidence | None:
    """A layer that died, or that saturated since the first steps."""
    if ACTIVATION_DEAD_FRACTION in facts.run:
        dead = facts.sample(ACTIVATION_DEAD_FRACTION)
        for column, owner in enumerate(dead.owners):
            shares = dead.values[np.isfinite(dead.values[:, column]), column]
            if len(shares) >= 2 and shares[-2:].min() >= _GONE:
                says = f"{shares[-1]:.0%} of the units of {owner} are dead"
                span = int(dead.steps[0]), int(dead.steps[-1])
                return Evidence(ACTIVATION_DEAD_FRACTION, span, says, owner)
    if ACTIVATION_SATURATED_FRACTION in facts.run:
        saturated = facts.sample(ACTIVATION_SATURATED_FRACTION, inner_activations(facts))
        if len(saturated) >= _HELD:
            first, last = np.nan_to_num(saturated.values[0]), saturated.between(0.5, 1).medians()
            grown = np.where(last - first > _STUCK / 2, np.nan_to_num(last), 0)
            if grown.max(initial=0) >= _STUCK:
                worst = int(grown.argmax())
                owner = saturated.owners[worst]
                says = (
                    f"{last[worst]:.0%} of the outputs of {owner} are at their bounds"
                    f" ({first[worst]:.0%} at first)"
                )
                span = int(saturated.steps[0]), int(saturated.steps[-1])
                return Evidence(ACTIVATION_SATURATED_FRACTION, span, says, owner)
    return None


def _fell_before(facts: Facts) -> bool:
    """Whether a loss that was lost had fallen well until then: no step had led astray."""
    curve = facts.signed_curve
    if isinstance(curve, str) or len(curve) < _HELD:
        return False
    return midmean(curve.part(0.8)) < (1 - _POOR) * float(np.median(curve.values[:3]))


def _little_learned(facts: Facts) -> bool:
    """Whether the loss, though it fell, is still more than most of what a constant answer gives."""
    curve, constant = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(constant, str) or not len(curve):
        return False
    return midmean(curve.part(0.8)) > _MOST * constant.level * constant.scale


def _young(facts: Facts) -> bool:
    """Whether so few losses were read that nobody can tell how they went."""
    return LOSS not in facts.run or max(map(len, facts.run[LOSS].values()), default=0) < _FEWEST


def _born_small(facts: Facts, layer: Layer) -> bool:
    """Whether a weight began far smaller than one that keeps the size of its input."""
    norms = facts.run[WEIGHT_NORM].get(layer.name) if WEIGHT_NORM in facts.run else None
    if norms is None or not len(norms):
        return False
    width = prod(layer.shape[1:])
    ratios = facts.run[UPDATE_RATIO].get(layer.name)
    first = float(ratios.values[0]) if ratios is not None and len(ratios) else 0.0
    grown = sqrt(1 + first**2) if isfinite(first) else 1.0  # it is read after the first update
    return float(norms.values[0]) / grown / layer.root < _SMALL / sqrt(width)


def _born_at_zero_left_out(ratios: Sample) -> Sample:
    """Without weights that were zero when they first moved: that ratio was infinite."""
    moved = ~(ratios.values == 0)
    if not moved.any():
        return ratios
    first = ratios.values[moved.argmax(axis=0), np.arange(len(ratios.owners))]
    kept = np.flatnonzero(np.isfinite(first))
    rows = np.isfinite(ratios.values[:, kept]).any(axis=1)
    owners = tuple(ratios.owners[column] for column in kept)
    return Sample(ratios.steps[rows], owners, ratios.values[rows][:, kept])


def _held(typical: Matrix) -> Matrix:
    """The running median over as many samples as have to be large."""
    width = min(_HELD, len(typical))
    return median(np.lib.stride_tricks.sliding_window_view(typical, width), axis=1)


def _compete(facts: Facts) -> bool:
    """Whether several losses go on side by side, and not one after the other."""
    spans = sorted((each.first, each.last) for each in facts.run[LOSS].values() if len(each))
    return any(later[0] < earlier[1] for earlier, later in pairwise(spans))
