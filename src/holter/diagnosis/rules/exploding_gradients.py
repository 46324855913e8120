"""Gradients grow by orders of magnitude and take the training with them."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.causes import explained_by
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.curve import rate_left
from holter.diagnosis.facts.gradient_scale import BORN, RISEN, GradientScale, onset
from holter.diagnosis.facts.outcome import CURVES, Outcome
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_COEFFICIENT, GRAD_NORM, GRAD_TOTAL_NORM, LOSS, UPDATE_RATIO

_DECAYED = 0.3  # of its peak, under which a learning rate has decayed
_LATE_RISE = 1.5  # times the norm half-way that is worth a note
_GROWN = 10.0  # times its level, that the last finite norms of an explosion have
_FEWEST = 10  # norms
_OUTLIER = 50.0  # times the median that a single norm has to reach to be worth a note
_HIGH = 3.0  # times the median up to which an update counts as unchanged


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(GRAD_TOTAL_NORM,),
)
def exploding_gradients(facts: Facts, *, born: float = BORN) -> Iterator[Verdict]:
    """Gradients grow by orders of magnitude and take the training with them.

    ## What it does
    Compares the norm of all gradients with that of the first steps of the same run, and speaks
    where it came to a hundred times as much, stayed there or became infinite, and the loss went
    badly. At the first step, when there is no past, it multiplies that norm by the norm of the
    weights and divides by the loss of a constant answer (the first loss, where that is unknown),
    which is free of all units: networks that can be trained have between a tenth and some hundreds,
    and over `born` the gradients explode from birth. No norm is called large by itself: sums over a
    batch, many parameters and low learning rates make large norms that are sound.

    ## Why it matters
    A recurrence or a stack of layers that multiplies by more than one does so again and again. One
    step along such a gradient throws the weights far away.

    ## What to do
    Clip the gradient norm (at about its usual value), keep the gain of every layer near one by
    initialisation or normalisation, use gated cells in place of plain recurrence.

    ## When it is wrong
    Norms that rise late, while the learning rate falls, are common and harmless, and so are single
    outliers; both are left out unless the loss suffers. A loss that explodes by itself, such as a
    logarithm near zero, brings gradients with it.

    ## How to confirm
    - Repeat the run with `torch.nn.utils.clip_grad_norm_` at the usual norm: it should survive.
    - Print the gradient norm of each layer at the first step: it should not grow towards the input.
    """
    result = facts.outcome
    loud = facts.gradient_scale
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        if not len(norm) or (len(norm) < _FEWEST and (result is None or result.finite)):
            yield exploding_gradients.not_examined(
                f"{len(norm)} of the {_FEWEST} gradient norms needed{of(owner)}"
            )
            continue
        at = onset(norm)
        if at is not None and not _grew(norm, at):
            at = None
        from_birth = (
            loud is not None and loud.by_constant > born and bool(np.isfinite(norm.values[0]))
        )
        if at is None and not from_birth:
            yield from _note(facts, norm)
            yield from _late_rise(facts, norm)
            first, last = (
                float(np.median(part[np.isfinite(part)])) if np.isfinite(part).any() else np.nan
                for part in (norm.values[:_FEWEST], norm.values[-_FEWEST:])
            )
            yield exploding_gradients.clear(
                f"the gradient norm{of(owner)} was {first:.2g} at first and is {last:.2g} at last"
            )
        elif result is None:
            yield exploding_gradients.not_examined(
                f"gradients{of(owner)} grew, but whether the loss fell cannot be told"
            )
        elif not result.bad:
            yield exploding_gradients.clear(f"gradients{of(owner)} are large, but {result.says}")
        else:
            yield _finding(facts, owner, norm, result, loud if from_birth else None)


def _finding(
    facts: Facts, owner: str, norm: Series, result: Outcome, loud: GradientScale | None
) -> Verdict:
    values = norm.values.astype(np.float64)
    largest = float(np.max(values[np.isfinite(values)], initial=0))
    causes, sure = tuple(explained_by(exploding_gradients.name)), True
    if loud is not None:
        # where the loss is as large as its gradients, and no update was, the start is to blame
        sure = loud.by_loss > BORN or _moved(facts)
        causes = (*causes, "huge-updates") if sure else (*CURVES, "unrelated-labels")
        since = norm.first
        summary = (
            f"gradients{of(owner)} explode from the first step: norm {values[0]:.2g}, by which the"
            f" loss would change {loud.by_constant:.1e}-fold if the weights changed by their size"
        )
    else:
        at = onset(norm) or 0
        since = int(norm.steps[at])
        base = float(np.median(values[: max(at, 1)]))
        summary = (
            f"gradients{of(owner)} grew from a norm of {base:.2g} to {largest:.2g}, over"
            f" {RISEN:.0f}-fold since step {since}"
        )
    return exploding_gradients.finding(
        f"{summary}, and {result.says}",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        severity=Severity.ERROR if sure else Severity.WARNING,
        onset=since,
        evidence=(
            Evidence(
                GRAD_TOTAL_NORM,
                (norm.first, norm.last),
                f"first {values[0]:.3g}, largest finite {largest:.3g}, last {values[-1]:.3g}",
                owner,
            ),
            *_steepest(facts, since),
            result.evidence,
        ),
        fix="clip the gradient norm at about its usual value, and keep the gain of every layer"
        " near 1 (initialisation, normalisation, gated cells)",
        explains=causes,
    )


def _grew(norm: Series, at: int) -> bool:
    """Whether it rose in finite steps: a norm that is lost at once has not exploded."""
    before = norm.values[: max(at, 1)].astype(np.float64)
    before = before[np.isfinite(before)]
    if np.isfinite(norm.values[at]) or not len(before):
        return True
    return bool(np.median(before[-3:]) > _GROWN * np.median(before))


def _moved(facts: Facts) -> bool:
    """Whether an update was as large as the weights themselves."""
    if UPDATE_RATIO not in facts.run:
        return False
    ratios = facts.sample(UPDATE_RATIO, [each.name for each in facts.layers] or None)
    return bool(np.nan_to_num(ratios.typical()).max(initial=0) >= 1)


def _steepest(facts: Facts, since: int) -> Iterator[Evidence]:
    """The layer with the largest gradient for its size when it began."""
    if GRAD_NORM not in facts.run:
        return
    layers = {each.name: each for each in facts.layers}
    norms = facts.sample(GRAD_NORM, layers).since(since)
    if len(norms) and len(norms.owners) > 1:
        sizes = norms.values[0] / [layers[name].root for name in norms.owners]
        if np.isfinite(sizes).any():
            worst = int(np.nanargmax(sizes))
            yield Evidence(
                GRAD_NORM,
                (int(norms.steps[0]), int(norms.steps[0])),
                f"largest for its size, {norms.values[0, worst]:.2g} at step {norms.steps[0]}",
                norms.owners[worst],
            )


def _late_rise(facts: Facts, norm: Series) -> Iterator[Verdict]:
    """A norm that rises while the learning rate decays: usual, and no sign of trouble."""
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
    before, after = float(np.median(norm.values[middle])), float(np.median(norm.values[end]))
    if after > _LATE_RISE * before > 0:
        yield exploding_gradients.normal(
            f"the gradient norm rose from {before:.3g} to {after:.3g} while the learning rate went"
            f" down to {left:.0%} of its peak: usual late in a decay",
            (Evidence(GRAD_TOTAL_NORM, (norm.first, norm.last), f"{after:.3g} at last"),),
        )


def _note(facts: Facts, norm: Series) -> Iterator[Verdict]:
    """A few outliers whose update was as ever, thanks to clipping or to Adam: nothing to mend."""
    values = norm.values[np.isfinite(norm.values)]
    steps = norm.steps[np.isfinite(norm.values)]
    if len(values) < 50 or UPDATE_RATIO not in facts.run:
        return
    wild = values > _OUTLIER * np.median(values)
    if not 0 < wild.sum() <= max(1, len(values) // 50) or wild[:10].any():
        return
    ratios = facts.sample(UPDATE_RATIO, [each.name for each in facts.layers] or None)
    typical = ratios.typical()
    known = np.isfinite(typical)
    then = typical[known & np.isin(ratios.steps, steps[wild])]
    if not len(then) or then.max() > _HIGH * np.median(typical[known]):
        return
    why = "clipped" if CLIP_COEFFICIENT in facts.run else "scaled by the optimizer"
    at = int(steps[wild][0])
    yield exploding_gradients.normal(
        f"a gradient norm of {values[wild].max():.3g} on {int(wild.sum())} of {len(values)} steps,"
        f" {values[wild].max() / np.median(values):.0f} times the usual; it was {why} and the"
        " update unchanged",
        (Evidence(GRAD_TOTAL_NORM, (at, int(steps[wild][-1])), "before clipping"),),
    )
