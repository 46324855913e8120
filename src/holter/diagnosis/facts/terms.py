"""The terms of a loss beside the best constant prediction for each of them."""

from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import constant_of, most_frequent, trained_functions
from holter.diagnosis.facts.chance import Chance, Limits, Standing, compared
from holter.diagnosis.facts.curve import curve_of
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.trained import trained_loss
from holter.record.signals import LOSS_MEAN, TARGET_CLASSES

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_STEADY = (0.5, 2.0)  # between which the targets of a term may drift
_SHARE = 0.3  # of the loss at the end that a term makes up
_BALANCED = 0.65  # largest share of one of two classes that an adversary confuses


def terms_of(facts: "Facts") -> tuple[Chance, ...]:
    """Return the terms whose best constant prediction is known, each compared with it.

    They are the loss functions that a training calls once before each backward pass. Those that
    make up little of the loss are left out, and those of optimizers that compete.
    """
    trained = trained_loss(facts)
    if LOSS_MEAN not in facts.run or isinstance(trained, str):
        return ()
    loss = midmean(np.abs(curve_of(*trained).part(0.8)))
    terms = []
    for function in trained_functions(facts):
        means = facts.run[LOSS_MEAN].get(function)
        baseline = constant_of(facts, function, 1.0)
        if means is None or isinstance(baseline, str):
            continue
        curve = curve_of(function, means)
        if not len(curve) or not _STEADY[0] < baseline.drift < _STEADY[1]:
            continue
        term = compared(facts, curve, baseline, Limits(), LOSS_MEAN)
        if not isinstance(term, str) and term.level > _SHARE * loss:
            terms.append(term)
    return tuple(terms)


def at_chance(facts: "Facts") -> tuple[Chance, ...]:
    """Return the terms that learned nothing.

    A term that tells two balanced classes apart may be an adversary beside a term that is learned:
    it is meant to be confused.
    """
    stuck = [term for term in facts.terms if term.standing is Standing.AT_CHANCE]
    if any(term.standing is Standing.BETTER for term in facts.terms):
        stuck = [term for term in stuck if not _may_be_adversary(facts, term)]
    return tuple(stuck)


def _may_be_adversary(facts: "Facts", term: Chance) -> bool:
    function = term.baseline.function
    classes = facts.run[TARGET_CLASSES].get(function) if TARGET_CLASSES in facts.run else None
    largest = most_frequent(facts, function)
    is_binary = function.startswith("binary") or (
        classes is not None and len(classes) > 0 and classes.values[-1] == 2
    )
    return is_binary and (largest is None or largest < _BALANCED)
