"""The inputs are far too large or far too small."""

import re
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import Curve
from holter.diagnosis.facts.outcome import Outcome
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACTIVATION_STD,
    INPUT_ABSMAX,
    INPUT_OTHER_ABSMAX,
    INPUT_OTHER_MEAN,
    INPUT_OTHER_STD,
    INPUT_STD,
    LOSS,
    USE_CHANGE,
    USE_SCALE,
)

_UPPER = 0.75  # quantile of the readings that is judged
_EARLY = 10  # readings of the first layer, before its weights have changed much
_GENERIC = ("Sequential", "ModuleList", "ModuleDict")  # classes that say nothing of a model
_ARGUMENT = ", argument "  # in the names of further tensors that a model is called with
_TWO_VALUED = 0.02  # deviation of the variance from that of two values, one of which is 0
_SPARSE = 5.0  # largest input over the limit for small ones: few values are not small values


class _Columns(NamedTuple):
    """Columns of a far smaller scale than another one, which the model hardly uses."""

    says: str
    evidence: tuple[Evidence, ...]


@exception
def masked(facts: Facts, model: str, std: float, near_one: float) -> str | None:  # noqa: ARG001
    """The input is an additive attention mask: it holds 0 and a large negative number."""
    means, peaks = (
        readings(facts, signal, model) for signal in (INPUT_OTHER_MEAN, INPUT_OTHER_ABSMAX)
    )
    if not len(means) or not len(peaks):
        return None
    below, peak = -float(np.median(means)), float(np.median(peaks))
    variance = float(np.median(readings(facts, INPUT_OTHER_STD, model))) ** 2
    if below < 0 or abs(variance - below * (peak - below)) > _TWO_VALUED * variance:
        return None
    return f"{model}, holds 0 and -{peak:.3g}, and nothing between them"


@exception
def normalised_inside(facts: Facts, model: str, std: float, near_one: float) -> str | None:
    """The first layer normalises the inputs to a scale of about 1, like a batch norm."""
    inside = _first_layer(facts, model.partition(_ARGUMENT)[0])
    if inside is None or not (inside < near_one if std > 1 else inside > 1 / near_one):
        return None
    return (
        f"inputs of {model} have a standard deviation of {std:.3g}, and {inside:.2g} after the"
        " first layer"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        INPUT_STD,
        INPUT_ABSMAX,
    ),
    exceptions=(masked, normalised_inside),
)
def unscaled_inputs(
    facts: Facts,
    *,
    large: Annotated[float, "standard deviation of far too large inputs"] = 20.0,
    small: Annotated[float, "standard deviation of far too small inputs"] = 0.02,
    min_steps: Annotated[int, "sampled steps needed"] = 5,
    near_one: Annotated[float, "factor from 1 that is a normal scale after the first layer"] = 3.0,
    left: Annotated[float, "share of the best constant prediction's loss that is left"] = 0.7,
    min_losses: Annotated[int, "losses needed to judge what is left"] = 50,
    far: Annotated[float, "first loss, in units of the best constant prediction's"] = 3.0,
    uneven: Annotated[float, "factor between the scales of two columns"] = 100.0,
    unused: Annotated[float, "change of the outputs by a column that is hardly used"] = 0.1,
    good: Annotated[float, "share by which the loss falls in a successful training"] = 0.9,
) -> Iterator[Verdict]:
    """The inputs are far too large or far too small.

    ## What it does
    Measures the standard deviation of the model's inputs, and reports a very large or very small
    one if the loss did not fall, fell little below that of the best constant prediction, or started
    far above it and was still above it halfway. It is a hint if the loss cannot be judged, if
    another model of the same class receives inputs of a normal scale, or if the trained model
    hardly uses columns with a far smaller scale than others. Further arguments of the model are
    reported only if they are far too large and the training failed.

    ## Why it matters
    Weights are initialised for inputs with a scale of about 1. With inputs of 100 the first outputs
    are of that size, gradients are larger still, and the first steps kill or saturate units; with
    inputs of 0.004 the first layer barely learns.

    ## Example
    ```python
    logits = model(pixels.float())          # bad
    logits = model((pixels - mean) / std)   # good
    ```

    ## What to do
    Standardise inputs with the mean and standard deviation of the training set: `(x - mean) / std`.
    Divide pixels by 255, once.

    ## When it is wrong
    Models that normalise their input without a module. Integer inputs such as token ids are not
    examined.

    ## How to confirm
    - Divide the inputs by their standard deviation and repeat the first 100 steps.
    """
    yield from _others(facts, large, min_steps, near_one, _damage(facts, left, min_losses, far))
    for model, series in facts.run[INPUT_STD].items():
        peaks = readings(facts, INPUT_ABSMAX, model)
        deviations = series.values[np.isfinite(series.values)]
        if len(deviations) < min_steps or not len(peaks):
            yield unscaled_inputs.not_examined(f"{len(deviations)} of the {min_steps} steps needed")
            continue
        # Of inputs that take turns, such as real and generated samples, the larger ones count.
        std, peak = (float(np.quantile(read, _UPPER)) for read in (deviations, peaks))
        measured = f"inputs of {model} have a standard deviation of {std:.3g} and reach {peak:.3g}"
        if not std > large and not (std < small and 0 < peak < _SPARSE * small):
            columns = _uneven_columns(facts, uneven, unused)
            outcome = facts.outcome
            if columns is None:
                yield unscaled_inputs.clear(measured)
            elif outcome is not None and _gone(outcome) >= good:
                yield unscaled_inputs.harmless(f"{columns.says}; {outcome.says}")
            else:
                yield unscaled_inputs.finding(
                    columns.says,
                    confidence=Confidence.HINT,
                    onset=series.first,
                    evidence=columns.evidence,
                    fix="standardise each column with its own mean and standard deviation: `(x -"
                    " x.mean(0)) / x.std(0)` of the training set",
                )
            continue
        excuse = unscaled_inputs.excused(facts, model, std, near_one)
        if excuse is not None:
            yield excuse
            continue
        damage = _damage(facts, left, min_losses, far)
        curve = facts.curve if LOSS in facts.run else "no loss was recorded"
        if damage is None and not isinstance(curve, str):
            if facts.outcome is None:
                yield unscaled_inputs.not_examined(f"{measured}; too few losses to judge the run")
            elif (twin := _twin(facts, model, near_one)) is not None:
                yield unscaled_inputs.finding(
                    f"{measured}, those of {twin.owner}, a model of the same class, {twin.says}",
                    confidence=Confidence.HINT,
                    onset=series.first,
                    evidence=(
                        Evidence(INPUT_STD, (series.first, series.last), f"{std:.3g}", model),
                        twin,
                    ),
                    fix="preprocess the inputs in both stages with the same function and constants",
                )
            else:
                yield unscaled_inputs.harmless(f"{measured}; {facts.outcome.says}")
            continue
        span = (series.first, series.last)
        evidence = (
            Evidence(INPUT_STD, span, f"upper quartile {std:.3g}", model),
            Evidence(INPUT_ABSMAX, span, f"upper quartile {peak:.3g}", model),
        )
        size = "large" if std > large else "small"
        course = damage.says if damage is not None else curve
        yield unscaled_inputs.finding(
            f"{measured}: far too {size}; {course}",
            confidence=Confidence.HINT if damage is None else Confidence.LIKELY,
            onset=series.first,
            evidence=evidence if damage is None else (*evidence, damage),
            fix="standardise the inputs: `(x - mean) / std` of the training set",
        )


def _others(
    facts: Facts,
    large: float,
    min_steps: int,
    near_one: float,
    damage: Evidence | None,
) -> Iterator[Verdict]:
    """Judge further arguments, which may be positions or masks: only those that are large."""
    arguments = facts.run[INPUT_OTHER_STD].items() if INPUT_OTHER_STD in facts.run else ()
    for argument, series in arguments:
        deviations, peaks = (
            readings(facts, signal, argument) for signal in (INPUT_OTHER_STD, INPUT_OTHER_ABSMAX)
        )
        if min(len(deviations), len(peaks)) < min_steps:
            continue
        std, peak = (float(np.quantile(read, _UPPER)) for read in (deviations, peaks))
        if not std > large:
            continue
        measured = f"{argument}, has a standard deviation of {std:.3g} and reaches {peak:.3g}"
        excuse = unscaled_inputs.excused(facts, argument, std, near_one)
        if excuse is not None:
            yield excuse
        elif damage is None:
            yield unscaled_inputs.harmless(f"{measured}; the loss shows no damage")
        else:
            span = (series.first, series.last)
            yield unscaled_inputs.finding(
                f"{measured}: far too large; {damage.says}",
                confidence=Confidence.LIKELY,
                onset=series.first,
                evidence=(
                    Evidence(INPUT_OTHER_STD, span, f"upper quartile {std:.3g}", argument),
                    Evidence(INPUT_OTHER_ABSMAX, span, f"upper quartile {peak:.3g}", argument),
                    damage,
                ),
                fix="standardise the inputs: `(x - mean) / std` of the training set; a column with"
                " a standard deviation of almost 0 needs a lower bound: `std.clamp(min=...)`",
            )


def _twin(facts: Facts, model: str, near_one: float) -> Evidence | None:
    """Return the normal scale of the inputs of another model of the same class, if there is one.

    It may have been trained before, and have given its weights to this one.
    """
    kind = _class_of(model)
    for other, series in facts.run[INPUT_STD].items():
        deviations = series.values[np.isfinite(series.values)]
        if other == model or _class_of(other) != kind or kind in _GENERIC or not len(deviations):
            continue
        std = float(np.quantile(deviations, _UPPER))
        if 1 / near_one < std < near_one:
            return Evidence(INPUT_STD, (series.first, series.last), f"{std:.3g}", other)
    return None


def _class_of(label: str) -> str:
    return re.sub(r" \(\d+\)$", "", label)


def _uneven_columns(facts: Facts, uneven: float, unused: float) -> _Columns | None:
    """Return the columns of a scale far below another one's that hardly change the outputs."""
    if USE_SCALE not in facts.run:
        return None
    for trial, scales in facts.run[USE_SCALE].items():
        changes = facts.run[USE_CHANGE][trial]
        used, wide = (
            dict(zip(read.steps.tolist(), read.values.tolist(), strict=True))
            for read in (changes, scales)
        )
        largest = max(wide.values())
        small = [place for place in wide if wide[place] < largest / uneven and used[place] < unused]
        if not small or max(used.values()) < unused:
            continue
        most, widest = max(used[place] for place in small), max(wide[place] for place in small)
        places = ", ".join(map(str, small[:4]))
        says = (
            f"{len(small)} of {len(wide)} {trial} have a standard deviation of at most"
            f" {widest:.2g}, another one {largest:.3g}, and the model hardly uses them"
        )
        evidence = (
            Evidence(USE_SCALE, (0, scales.last), f"of {places}: up to {widest:.2g}", trial),
            Evidence(
                USE_CHANGE,
                (0, changes.last),
                f"{most:.2g} standard deviations of the outputs at most by these,"
                f" {max(used.values()):.2g} by another",
                trial,
            ),
        )
        return _Columns(says, evidence)
    return None


def _gone(outcome: Outcome) -> float:
    """Return the share of the loss that the training removed, of a constant prediction if known."""
    return outcome.fall if outcome.gain is None else outcome.gain


def _first_layer(facts: Facts, model: str) -> float | None:
    """Return the larger output scale of a model's first two modules in the first steps, or None.

    Embeddings are left out: they are given other inputs. Recurrent layers are bounded whatever the
    input is: if the first one is recurrent, nothing is known.
    """
    if ACTIVATION_STD not in facts.run:
        return None
    deviations = facts.run[ACTIVATION_STD]
    own = [name for name in deviations if name.startswith(f"{model}.")]  # of several models
    early = {name: deviations[name].values[:_EARLY] for name in own or deviations}
    parameters = facts.run.meta.parameters
    modules = [
        name
        for name, values in early.items()
        if np.isfinite(values).any() and not _is_table(facts, name)
    ][:2]
    recurrent = [f"{name}.weight_hh_l0" in parameters for name in modules]
    if not modules or recurrent[0]:
        return None
    return max(
        float(np.nanmax(early[name][np.isfinite(early[name])]))
        for name, bounded in zip(modules, recurrent, strict=True)
        if not bounded
    )


def _is_table(facts: Facts, module: str) -> bool:
    """Whether a module has a matrix alone, as embeddings have, and a layer without a bias."""
    parameters = facts.run.meta.parameters
    weight = parameters.get(f"{module}.weight")
    return weight is not None and len(weight.shape) == 2 and f"{module}.bias" not in parameters


def _damage(facts: Facts, left: float, min_losses: int, far: float) -> Evidence | None:
    """Return the evidence that the run failed, or None."""
    outcome = facts.outcome
    if outcome is not None and outcome.bad:
        return outcome.evidence
    if LOSS not in facts.run:
        return None
    curve, constant = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(constant, str) or not len(curve):
        return None
    level = constant.level * constant.scale
    highest, middle = float(curve.values[:10].max()), curve.part(0.4, 0.6)
    if len(curve) >= min_losses and _after_twice_the_steps(curve) > left * level:
        end = float(np.median(curve.part(0.8)))
        says = f"the loss ends at {end:.3g} (best constant prediction {level:.3g})"
        return Evidence(LOSS, curve.span, says, curve.owner)
    if highest < far * level or not len(middle) or float(np.median(middle)) < level:
        return None
    return Evidence(
        LOSS,
        (int(curve.steps[0]), int(curve.steps[min(9, len(curve) - 1)])),
        f"the loss began at {highest:.3g} and was {np.median(middle):.3g} halfway (best constant"
        f" prediction {level:.3g})",
        curve.owner,
    )


def _after_twice_the_steps(curve: Curve) -> float:
    """Return the loss to expect after as many steps again: each doubling lowers it equally."""
    half, end = float(np.median(curve.part(0.4, 0.5))), float(np.median(curve.part(0.8)))
    return end - max(half - end, 0.0)
