"""The inputs are far too large or far too small."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import Curve
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACTIVATION_STD, INPUT_ABSMAX, INPUT_STD, LOSS

_FEWEST = 5  # sampled steps
_EARLY = 10  # readings of the first layer, before its weights have changed much
_USUAL = 3.0  # standard deviation of what a first layer returns, at most
_SMALL = 0.3  # and the least that small inputs were brought to, as by a norm
_LEFT = 0.7  # share of what a constant answer gives that is left where little was learned
_MANY = 50  # losses after which that may be said
_FAR = 3.0  # times the loss of a constant answer
_SPARSE = 0.1  # largest input over which a small deviation means few values, not small ones


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        INPUT_STD,
        INPUT_ABSMAX,
    ),
)
def unscaled_inputs(facts: Facts, *, large: float = 20.0, small: float = 0.02) -> Iterator[Verdict]:
    """The inputs are far too large or far too small.

    ## What it does
    Looks at the numbers that the model is called with. They are far too large where their standard
    deviation is over `large`, such as pixels from 0 to 255 or a column in its own unit; far too
    small where it is under `small` and none is over 0.1, such as pixels divided by 255 twice. That
    is a finding where the loss was bad, where it ended above 70 % of what a constant answer gives
    and would after as many steps again, or where it began above three times what a constant answer
    gives and was above it still half-way; a hint where losses of several optimizers compete and
    cannot be judged. Where the first layer of the model brings the inputs to a usual size it is
    silent.

    ## Why it matters
    Weights are initialised for inputs of about 1. With inputs of 100 the first outputs are of that
    size, the first gradients are larger still, and the first steps kill units or saturate them;
    with inputs of 0.004 the first layer hardly learns.

    ## What to do
    Standardise inputs with the mean and standard deviation of the training set: `(x - mean) / std`;
    divide pixels by 255, once.

    ## When it is wrong
    Models that normalise their input in a way that is not a module of its own. Token ids are
    integers and not looked at.

    ## How to confirm
    - Divide the inputs by their standard deviation and repeat the first 100 steps.
    """
    for owner, spread in facts.run[INPUT_STD].items():
        peak = readings(facts, INPUT_ABSMAX, owner)
        known = spread.values[np.isfinite(spread.values)]
        if len(known) < _FEWEST or not len(peak):
            yield unscaled_inputs.not_examined(f"{len(known)} of the {_FEWEST} steps needed")
            continue
        usual, top = float(np.median(known)), float(np.median(peak))
        said = f"inputs of {owner} have a standard deviation of {usual:.3g} and reach {top:.3g}"
        big, tiny = usual > large, usual < small and 0 < top < _SPARSE
        if not big and not tiny:
            yield unscaled_inputs.clear(said)
            continue
        inside = _first_layer(facts, owner)
        if inside is not None and (inside < _USUAL if big else inside > _SMALL):
            yield unscaled_inputs.clear(f"{said}; behind the first layer it is {inside:.2g}")
            continue
        harm, losses = _harm(facts), facts.run[LOSS].values() if LOSS in facts.run else ()
        compete = sum(len(each) > 0 for each in losses) > 1
        if harm is None and not (big and compete):
            yield unscaled_inputs.clear(f"{said}; the loss fell all the same")
            continue
        span = (spread.first, spread.last)
        evidence = (
            Evidence(INPUT_STD, span, f"median {usual:.3g}", owner),
            Evidence(INPUT_ABSMAX, span, f"median {top:.3g}", owner),
        )
        came = harm.says if harm is not None else "what came of it cannot be told"
        yield unscaled_inputs.finding(
            f"{said}: far too {'large' if big else 'small'}; {came}",
            confidence=Confidence.HINT if harm is None else Confidence.LIKELY,
            onset=spread.first,
            evidence=evidence if harm is None else (*evidence, harm),
            fix="standardise the inputs: (x - mean) / std of the training set",
        )


def _first_layer(facts: Facts, model: str) -> float | None:
    """The size of what a model's first two modules return at first: the larger one.

    One of them may be the embedding of other inputs. None where nothing was read, or the first is
    bounded whatever the input is, as recurrent layers are.
    """
    if ACTIVATION_STD not in facts.run:
        return None
    sizes = facts.run[ACTIVATION_STD]
    own = [name for name in sizes if name.startswith(f"{model}.")]  # where there are several
    early = {name: sizes[name].values[:_EARLY] for name in own or sizes}
    read = [name for name, first in early.items() if np.isfinite(first).any()][:2]
    bounded = [f"{name}.weight_hh_l0" in facts.run.meta.parameters for name in read]
    if not read or bounded[0]:
        return None
    return max(
        float(np.nanmax(early[name][np.isfinite(early[name])]))
        for name, recurrent in zip(read, bounded, strict=True)
        if not recurrent
    )


def _harm(facts: Facts) -> Evidence | None:
    """What speaks for a bad effect: the outcome, or a first loss far above a constant answer's."""
    result = facts.outcome
    if result is not None and result.bad:
        return result.evidence
    if LOSS not in facts.run:
        return None
    curve, constant = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(constant, str) or not len(curve):
        return None
    level = constant.level * constant.scale
    highest, later = float(curve.values[:10].max()), curve.part(0.4, 0.6)
    if len(curve) >= _MANY and _promise(curve) > _LEFT * level:
        end = float(np.median(curve.part(0.8)))
        says = f"the loss is {end:.3g} at last; a constant answer has {level:.3g}"
        return Evidence(LOSS, curve.span, says, curve.owner)
    if highest < _FAR * level or not len(later) or float(np.median(later)) < level:
        return None
    return Evidence(
        LOSS,
        (int(curve.steps[0]), int(curve.steps[min(9, len(curve) - 1)])),
        f"the loss began at {highest:.3g} and was still {np.median(later):.3g} half-way; a constant"
        f" answer has {level:.3g}",
        curve.owner,
    )


def _promise(curve: Curve) -> float:
    """Where the loss would be after as many steps again: it falls as much in each doubling."""
    half, end = float(np.median(curve.part(0.4, 0.5))), float(np.median(curve.part(0.8)))
    return end - max(half - end, 0.0)
