"""Gradients grow by orders of magnitude, or are too large from the first step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.causes import CURVES, explained_by
from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.curve import rate_left
from holter.diagnosis.facts.gradient_scale import GROWTH, LARGE_SCALE, rise
from holter.diagnosis.facts.stages import starts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number, of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_COEFFICIENT, GRAD_NORM, GRAD_TOTAL_NORM, LOSS, UPDATE_RATIO

_DECAYED = 0.3  # share of its peak below which a learning rate has decayed
_FIRST = 20  # norms that are those of the first steps
_BURST = 3  # of them that have to be large
_LATE_RISE = 1.5  # times the norm half-way through that is worth a note
_OUTLIER = 50.0  # times the median norm that is worth a note
_UNCHANGED = 3.0  # times the median up to which an update counts as unchanged


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(GRAD_TOTAL_NORM,),
)
def exploding_gradients(
    facts: Facts,
    *,
    growth: Annotated[float, "gradient norm over that of the first steps"] = GROWTH,
    large_scale: Annotated[
        float, "gradient norm times RMS weight over the loss, at the first step"
    ] = LARGE_SCALE,
    min_norms: Annotated[int, "gradient norms needed while the loss is finite"] = 10,
    finite_growth: Annotated[float, "growth that has to precede a non-finite norm"] = 10.0,
) -> Iterator[Verdict]:
    """Gradients grow by orders of magnitude, or are too large from the first step.

    ## What it does
    Reports a total gradient norm that rises far above the initial one, within the first steps or
    permanently, or becomes non-finite, if the training failed. At the first step it multiplies the
    norm by the RMS weight and divides by the loss of the best constant prediction (or by the first
    loss): the change of the loss if each weight changes by a random amount of its own size.

    ## Why it matters
    A recurrence or a stack of layers with a gain above 1 multiplies gradients repeatedly. One step
    along such a gradient moves the weights far away.

    ## Example
    ```python
    loss.backward(); optimizer.step()                                             # bad
    loss.backward(); clip_grad_norm_(model.parameters(), 1.0); optimizer.step()   # good
    ```

    ## What to do
    Clip the gradient norm at about its median, keep the gain of every layer near 1 by
    initialisation or normalisation, use gated cells instead of plain recurrence.

    ## When it is wrong
    If the loss itself explodes, such as a logarithm near zero, so do its gradients. The absolute
    norm is not judged: a loss summed over a batch has large gradients by design.

    ## How to confirm
    - Repeat the run with `torch.nn.utils.clip_grad_norm_` at the median norm: it should survive.
    - Print the gradient norm of each layer at the first step: it should not grow towards the input.
    """
    outcome = facts.outcome
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        if not len(norm) or (len(norm) < min_norms and (outcome is None or outcome.finite)):
            yield exploding_gradients.not_examined(
                f"{len(norm)} of the {min_norms} gradient norms needed{of(owner)}"
            )
            continue
        explosion = (
            _at_start(facts, norm, large_scale)
            or _later(_of_last_stage(facts, norm, min_norms), growth, finite_growth)
            or _in_first_steps(norm, growth)
        )
        if explosion is None:
            yield from _outliers(facts, norm)
            yield from _late_rise(facts, norm)
            yield _without_explosion(owner, norm, min_norms)
            continue
        damage = damage_of(exploding_gradients, facts, f"gradients{of(owner)} {explosion.says}")
        if isinstance(damage, Damage):
            yield _finding(facts, owner, norm, explosion, damage)
        else:
            yield damage


def _without_explosion(owner: str, norm: Series, count: int) -> Verdict:
    finite = norm.values[np.isfinite(norm.values)]
    if not len(finite):
        return exploding_gradients.not_examined(f"no gradient norm{of(owner)} is finite")
    first, last = np.median(finite[:count]), np.median(finite[-count:])
    end = "at the end" if np.isfinite(norm.values[-1]) else "before it is not finite"
    return exploding_gradients.clear(
        f"median gradient norm{of(owner)}: {first:.2g} initially, {last:.2g} {end}"
    )


@dataclass(frozen=True, slots=True)
class Explosion:
    """How gradients exploded."""

    says: str
    step: int
    sure: bool  # that the gradients are the cause
    explains: tuple[str, ...]


def _at_start(facts: Facts, norm: Series, large_scale: float) -> Explosion | None:
    """Gradients that were too large at the first step."""
    scale, first = facts.gradient_scale, float(norm.values[0])
    if (
        scale is None
        or norm.first < facts.fresh_start
        or scale.over_baseline <= large_scale
        or not np.isfinite(first)
    ):
        return None
    unit = "loss" if isinstance(facts.baseline, str) else "loss of the best constant prediction"
    # a loss as large as its gradients, without a large update, points at the initialisation
    sure = scale.over_loss > large_scale or _weights_replaced(facts)
    return Explosion(
        f"explode from the first step: gradient norm ({first:.2g}) times RMS weight is"
        f" {scale.over_baseline:.2g} times the {unit}",
        norm.first,
        sure,
        (*explained_by(exploding_gradients.name), "huge-updates")
        if sure
        else (*CURVES, "unrelated-labels"),
    )


def _of_last_stage(facts: Facts, norm: Series, least: int) -> Series:
    """Return the norms since another loss function took over: its gradients have another scale."""
    begun = [start.step for start in starts(facts) if (norm.steps >= start.step).sum() >= least]
    kept = norm.steps >= max(begun, default=0)
    return Series(norm.steps[kept], norm.values[kept])


def _later(norm: Series, growth: float, finite_growth: float) -> Explosion | None:
    """Gradients that grew during training."""
    index = rise(norm, growth)
    if index is None:
        return None
    values = norm.values.astype(np.float64)
    before = values[: max(index, 1)]
    before = before[np.isfinite(before)]
    lost_at_once = not np.isfinite(values[index]) and len(before) > 0
    if lost_at_once and np.median(before[-3:]) <= finite_growth * np.median(before):
        return None
    return Explosion(
        f"grew more than {growth:.0f} times, from a norm of {_median(before):.2g} to"
        f" {_largest(norm):.2g}, since step {int(norm.steps[index])}",
        int(norm.steps[index]),
        True,
        tuple(explained_by(exploding_gradients.name)),
    )


def _in_first_steps(norm: Series, growth: float) -> Explosion | None:
    """Gradients that grew within the first steps and fell again, when weights were replaced."""
    early = norm.values[:_FIRST].astype(np.float64)
    finite = early[np.isfinite(early)]
    if len(finite) < _BURST or not finite[0] > 0:
        return None
    if np.sort(finite)[-_BURST] < growth * finite[0]:
        return None
    step = int(norm.steps[(early >= growth * finite[0]).argmax()])
    return Explosion(
        f"grew {finite.max() / finite[0]:.2g} times within the first {len(early)} steps, from a"
        f" norm of {finite[0]:.2g} to {finite.max():.2g}",
        step,
        False,  # updates that are too large do the same
        (*CURVES, "exploding-weights"),
    )


def _finding(
    facts: Facts, owner: str, norm: Series, explosion: Explosion, damage: Damage
) -> Verdict:
    sure = explosion.sure and damage.confidence is Confidence.LIKELY
    values = norm.values
    return exploding_gradients.finding(
        f"gradients{of(owner)} {explosion.says}; {damage.says}",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        severity=Severity.ERROR if sure else Severity.WARNING,
        onset=explosion.step,
        evidence=(
            Evidence(
                GRAD_TOTAL_NORM,
                (norm.first, norm.last),
                f"first {number(values[0])}, largest finite {_largest(norm):.3g}, last"
                f" {number(values[-1])}",
                owner,
            ),
            *_steepest(facts, explosion.step),
            *damage.evidence,
        ),
        fix="clip at about the median norm: `clip_grad_norm_(model.parameters(), max_norm)`, and"
        " keep the gain of every layer near 1 (initialisation, normalisation, gated cells)",
        explains=explosion.explains,
    )


def _median(values: npt.NDArray[np.floating]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _largest(norm: Series) -> float:
    return float(np.max(norm.values[np.isfinite(norm.values)], initial=0))


def _weights_replaced(facts: Facts) -> bool:
    """Whether an update was as large as the weights themselves."""
    if UPDATE_RATIO not in facts.run:
        return False
    ratios = facts.sample(UPDATE_RATIO, [layer.name for layer in facts.layers] or None)
    return bool(np.nan_to_num(ratios.typical()).max(initial=0) >= 1)


def _steepest(facts: Facts, since: int) -> Iterator[Evidence]:
    """The layer with the largest RMS gradient when the explosion began."""
    if GRAD_NORM not in facts.run:
        return
    layers = {layer.name: layer for layer in facts.layers}
    norms = facts.sample(GRAD_NORM, layers).since(since)
    if len(norms) and len(norms.owners) > 1:
        sizes = norms.values[0] / [layers[name].root for name in norms.owners]
        if np.isfinite(sizes).any():
            worst = int(np.nanargmax(sizes))
            yield Evidence(
                GRAD_NORM,
                (int(norms.steps[0]), int(norms.steps[0])),
                f"largest per element: norm {norms.values[0, worst]:.2g} at step {norms.steps[0]}",
                norms.owners[worst],
            )


def _late_rise(facts: Facts, norm: Series) -> Iterator[Verdict]:
    """Note a norm that rises while the learning rate decays: common and no failure."""
    curve = facts.signed_curve if LOSS in facts.run else ""
    finite = np.isfinite(norm.values)
    if isinstance(curve, str) or len(curve) < 50 or finite.sum() < 50:
        return
    left = rate_left(facts, curve)
    first, last = norm.steps[0], norm.steps[-1]
    middle = finite & (abs(norm.steps - (first + last) / 2) < (last - first) / 8)
    end = finite & (norm.steps > last - (last - first) / 8)
    if left is None or left > _DECAYED or not middle.any() or not end.any():
        return
    before, after = _median(norm.values[middle]), _median(norm.values[end])
    if after > _LATE_RISE * before > 0:
        yield exploding_gradients.normal(
            f"the gradient norm rose from {before:.3g} to {after:.3g} while the learning rate fell"
            f" to {left:.0%} of its peak: common late in a decay",
            (Evidence(GRAD_TOTAL_NORM, (norm.first, norm.last), f"{after:.3g} at the end"),),
        )


def _outliers(facts: Facts, norm: Series) -> Iterator[Verdict]:
    """Note a few outliers that did not change the update, by clipping or by Adam."""
    values = norm.values[np.isfinite(norm.values)]
    steps = norm.steps[np.isfinite(norm.values)]
    if len(values) < 50 or UPDATE_RATIO not in facts.run:
        return
    outliers = values > _OUTLIER * np.median(values)
    if not 0 < outliers.sum() <= max(1, len(values) // 50) or outliers[:10].any():
        return
    ratios = facts.sample(UPDATE_RATIO, [layer.name for layer in facts.layers] or None)
    updates = ratios.typical()
    finite = np.isfinite(updates)
    at_outliers = updates[finite & np.isin(ratios.steps, steps[outliers])]
    if not len(at_outliers) or at_outliers.max() > _UNCHANGED * np.median(updates[finite]):
        return
    why = "clipped" if CLIP_COEFFICIENT in facts.run else "scaled by the optimizer"
    largest = values[outliers].max()
    yield exploding_gradients.normal(
        f"gradient norm {largest:.3g} on {int(outliers.sum())} of {len(values)} steps,"
        f" {largest / np.median(values):.0f} times the median; it was {why}, so the update is"
        " unchanged",
        (
            Evidence(
                GRAD_TOTAL_NORM,
                (int(steps[outliers][0]), int(steps[outliers][-1])),
                "before clipping",
            ),
        ),
    )
