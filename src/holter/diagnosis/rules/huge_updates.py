"""Updates are so large that they overwrite the weights."""

from collections.abc import Iterator
from dataclasses import replace
from math import log10
from typing import Annotated

import numpy as np

from holter.diagnosis.causes import CURVES, explained_by
from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.gradient_scale import exploded_later, large_at_start
from holter.diagnosis.facts.layers import Layer, Matrix, Sample, inner_activations, median
from holter.diagnosis.facts.progress import steps_follow_gradients
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.weight_growth import initial_size
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_SATURATED_FRACTION,
    CLIP_COEFFICIENT,
    LR,
    UPDATE_RATIO,
)

_COMMON = 1e-3  # relative update of most trainings that go well
_REPLACED = 1.0  # relative update from which nothing is left of a weight
_SEVERAL = 2  # first updates that have to replace the weights
_UNEVEN = 10.0  # times the median update that only some steps reach
_SMALL_UPDATE = 0.03  # before an explosion of gradients that no update caused


@exception
def learned_until_nonfinite(facts: Facts, size: float, min_fall: float) -> str | None:
    """The loss fell until it became non-finite, so the updates were not too large to learn."""
    outcome, curve = facts.outcome, facts.signed_curve
    if outcome is None or outcome.finite or isinstance(curve, str) or len(curve) < 10:
        return None
    start, end = float(np.median(curve.values[:3])), midmean(curve.part(0.8))
    if end >= (1 - min_fall) * start:
        return None
    return (
        f"the median relative update is {percent(size)} of the weight norm, but the loss fell from"
        f" {start:.3g} to {end:.3g} before it became non-finite"
    )


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(UPDATE_RATIO,),
    exceptions=(learned_until_nonfinite,),
)
def huge_updates(
    facts: Facts,
    *,
    limit: Annotated[float, "relative update per step, without weight decay"] = 0.1,
    samples: Annotated[int, "sampled updates in a row whose median has to exceed the limit"] = 10,
    small: Annotated[
        float, "initial size, over one that preserves the input, of weights that have to grow"
    ] = 0.1,
    min_fall: Annotated[float, "fall of the loss, as a share, that rules out damage"] = 0.3,
    max_loss: Annotated[float, "final loss over the best constant prediction, likewise"] = 0.6,
    dead: Annotated[float, "share of dead units of a layer that is damage"] = 0.95,
    saturated: Annotated[float, "share of saturated outputs of a layer that is damage"] = 0.8,
    fitted: Annotated[float, "final loss over the best constant prediction: no damage below"] = 0.1,
) -> Iterator[Verdict]:
    """Updates are so large that they overwrite the weights.

    ## What it does
    Computes the relative update of each weight matrix (the norm of its change in one step over its
    norm) and takes the median over the matrices. It reports updates that are large over several
    samples in a row, or overwrite the weights at several of the first steps, if the training
    failed, the loss hardly fell, or a layer died or saturated. Vectors and weights that start near
    zero are excluded.

    ## Why it matters
    A gradient is valid only near the current weights. After a step as large as the weights the loss
    jumps, units die, activations saturate, values overflow. Adam's first steps have the size of the
    learning rate regardless of the gradient, so a rate that is too high does its damage within ten
    steps, and the large weights hardly move afterwards.

    ## Example
    ```python
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)    # bad
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)   # good
    ```

    ## What to do
    Lower the learning rate until the median relative update is about 0.1 %. If only some steps are
    too large, clip the gradients (SGD) or use a warm-up (Adam, whose steps are not bounded by
    clipping).

    ## When it is wrong
    Weights that start near zero by design. A run that is bad for another reason and whose large
    first steps did no damage: raise `limit` if such steps are common for you.

    ## How to confirm
    - Repeat the first 100 steps with a hundredth of the learning rate: the loss should fall.
    - Sweep the learning rate upwards within one run and see where the loss starts to rise.
    """
    layers = facts.layers
    names = [layer.name for layer in layers if not _starts_small(facts, layer, small)]
    ratios = _without_zero_starts(facts.sample(UPDATE_RATIO, names if layers else None))
    outcome, decay = facts.outcome, facts.weight_decay
    updates = ratios.typical()
    needed = 1 if outcome is not None and not outcome.finite else samples
    if len(updates) < needed:
        yield huge_updates.not_examined(f"{len(updates)} of the {needed} sampled updates needed")
        return
    usual = float(_running_median(updates, samples).max())
    is_usual = usual - (decay.rate if decay else 0.0) >= limit
    size = usual if is_usual else max(usual, _replaced(updates, samples))
    measured = f"the median relative update is {percent(size)} of the weight norm"
    if size > usual:
        measured = f"some of the first updates are {percent(size)} of the weight norm"
    if not is_usual and size == usual:
        yield huge_updates.clear(
            "the median relative update is "
            + (f"at most {percent(size)} of the weight norm" if size else "0")
            + (f", with {decay.says}" if decay and size >= limit else "")
        )
        return
    excuse = huge_updates.excused(facts, size, min_fall)
    if excuse is not None:
        yield excuse
        return
    damage = damage_of(
        huge_updates,
        facts,
        measured,
        min_fall=min_fall,
        max_loss=max_loss,
    )
    units = _lost_units(facts, dead, saturated, samples)
    gain = None if outcome is None else outcome.gain
    if units is not None and (gain is None or gain < 1 - fitted):
        if isinstance(damage, Damage) and damage.confidence is Confidence.LIKELY:
            damage = replace(damage, evidence=(*damage.evidence, units))
        else:
            damage = Damage(units.says, Confidence.LIKELY, (units,))
    if isinstance(damage, Damage):
        yield _finding(facts, ratios, (measured, usual, size), damage)
    else:
        yield damage


def _finding(
    facts: Facts, ratios: Sample, read: tuple[str, float, float], damage: Damage
) -> Verdict:
    measured, usual, size = read
    updates = ratios.typical()
    onset = int(ratios.steps[(updates >= min(size, _REPLACED, updates.max())).argmax()])
    largest = ratios.owners[int(np.nan_to_num(ratios.values).max(axis=0).argmax())]
    rate = facts.learning_rate
    factor = 10 ** max(1, round(log10(max(usual, _COMMON) / _COMMON)))
    explains = tuple(explained_by(huge_updates.name))
    if large_at_start(facts) or exploded_later(facts, max_update=_SMALL_UPDATE):
        explains = CURVES  # gradients came first, and explain the rest
    decay = facts.weight_decay
    if decay is not None and decay.ordinary:
        explains += ("collapsed-weights",)
    return huge_updates.finding(
        measured + (f" (lr={rate})" if rate else "") + f"; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=onset,
        evidence=(
            Evidence(
                UPDATE_RATIO,
                (onset, int(ratios.steps[-1])),
                f"median over matrices: {percent(size)}, at most {percent(updates.max())};"
                f" about {percent(_COMMON)} is common",
                largest,
            ),
            *damage.evidence,
            *((Evidence(LR, (0, facts.run.steps - 1), f"learning rate {rate}"),) if rate else ()),
        ),
        fix=_clipping(facts, updates)
        + f"divide the learning rate by about {factor:g}"
        + (f" (now `lr={rate}`)" if rate else "")
        + f"; the relative update should be near {percent(_COMMON)}",
        explains=explains,
    )


def _clipping(facts: Facts, updates: Matrix) -> str:
    """Advise to clip where a few steps of SGD are far larger than the others."""
    is_uneven = updates.max() > _UNEVEN * np.median(updates)
    if CLIP_COEFFICIENT in facts.run or not steps_follow_gradients(facts) or not is_uneven:
        return ""
    return "clip the gradients, `clip_grad_norm_(model.parameters(), 0.25)`, or "


def _replaced(updates: Matrix, samples: int) -> float:
    """Return the size that several of the first updates reach if they replace the weights, or 0.

    Weights that have grown make later updates look small, however large the first ones were.
    """
    early = np.sort(updates[: 2 * samples])
    size = float(early[-_SEVERAL]) if len(early) >= _SEVERAL else 0.0
    return size if size >= _REPLACED else 0.0


def _lost_units(facts: Facts, dead: float, saturated: float, samples: int) -> Evidence | None:
    """A layer that died, or that saturated after the first steps."""
    return _dead_layer(facts, dead) or _saturated_layer(facts, saturated, samples)


def _dead_layer(facts: Facts, limit: float) -> Evidence | None:
    if ACTIVATION_DEAD_FRACTION not in facts.run:
        return None
    dead = facts.sample(ACTIVATION_DEAD_FRACTION)
    for column, owner in enumerate(dead.owners):
        shares = dead.values[np.isfinite(dead.values[:, column]), column]
        if len(shares) >= 2 and shares[-2:].min() >= limit:
            says = f"{shares[-1]:.0%} of the units of {owner} are dead"
            span = int(dead.steps[0]), int(dead.steps[-1])
            return Evidence(ACTIVATION_DEAD_FRACTION, span, says, owner)
    return None


def _saturated_layer(facts: Facts, limit: float, samples: int) -> Evidence | None:
    if ACTIVATION_SATURATED_FRACTION not in facts.run:
        return None
    saturated = facts.sample(ACTIVATION_SATURATED_FRACTION, inner_activations(facts))
    if len(saturated) < samples:
        return None
    first, last = np.nan_to_num(saturated.values[0]), saturated.between(0.5, 1).medians()
    grown = np.where(last - first > limit / 2, np.nan_to_num(last), 0)
    if grown.max(initial=0) < limit:
        return None
    worst = int(grown.argmax())
    owner = saturated.owners[worst]
    says = (
        f"{last[worst]:.0%} of the outputs of {owner} are saturated ({first[worst]:.0%} initially)"
    )
    span = int(saturated.steps[0]), int(saturated.steps[-1])
    return Evidence(ACTIVATION_SATURATED_FRACTION, span, says, owner)


def _starts_small(facts: Facts, layer: Layer, small: float) -> bool:
    """Whether a weight starts far smaller than one that preserves the size of its input."""
    size = initial_size(facts, layer)
    return size is not None and size < small


def _without_zero_starts(ratios: Sample) -> Sample:
    """Leave out weights that were zero when they first moved: that ratio was infinite."""
    moved = ~(ratios.values == 0)
    if not moved.any():
        return ratios
    first = ratios.values[moved.argmax(axis=0), np.arange(len(ratios.owners))]
    kept = np.flatnonzero(np.isfinite(first))
    rows = np.isfinite(ratios.values[:, kept]).any(axis=1)
    owners = tuple(ratios.owners[column] for column in kept)
    return Sample(ratios.steps[rows], owners, ratios.values[rows][:, kept])


def _running_median(updates: Matrix, samples: int) -> Matrix:
    width = min(samples, len(updates))
    return median(np.lib.stride_tricks.sliding_window_view(updates, width), axis=1)
