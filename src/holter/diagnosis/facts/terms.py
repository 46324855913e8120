"""The terms of a loss beside the best constant prediction for each of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import constant_of, last, most_frequent, trained_functions
from holter.diagnosis.facts.chance import Chance, Limits, Standing, compared
from holter.diagnosis.facts.curve import Curve, curve_of
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.trained import trained_loss
from holter.record.signals import LOSS_MEAN, TARGET_CLASSES

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_STEADY = (0.5, 2.0)  # between which the targets of a term may drift
_SHARE = 0.3  # of the loss, initially or at the end, that a term makes up
_MOST = 0.6  # of the initial loss: what terms at chance make up where nothing was learned
_ALL = 0.9  # of the initial loss: what known terms make up where no other is learned
_BALANCED = 0.65  # largest share of one of two classes that an adversary confuses


@dataclass(frozen=True, slots=True)
class Term:
    """One torch loss function of several terms, and its share of the initial loss."""

    chance: Chance
    share: float

    @property
    def function(self) -> str:
        """The loss function."""
        return self.chance.baseline.function

    @property
    def is_stuck(self) -> bool:
        """Whether it is no better than the best constant prediction."""
        return self.chance.standing is Standing.AT_CHANCE

    @property
    def is_learned(self) -> bool:
        """Whether it is better."""
        return self.chance.standing is Standing.BETTER


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a loss whose best constant prediction is known."""

    known: tuple[Term, ...] = ()
    stuck: tuple[Term, ...] = ()  # that learned nothing, and should have

    @property
    def learned_nothing(self) -> bool:
        """Whether all known terms learned nothing, and there is little else."""
        share = sum(term.share for term in self.stuck)
        return len(self.stuck) == len(self.known) > 0 and share > _MOST


def terms_of(facts: "Facts") -> Terms:
    """Compare each term of a loss with the best constant prediction for it.

    They are the loss functions that a training calls once before each backward pass. Those that
    make up little of the loss are left out, and those of optimizers that compete.

    A term that tells two balanced classes apart may be an adversary beside a term that is learned:
    it is meant to be confused, and is not stuck.
    """
    trained = trained_loss(facts)
    if LOSS_MEAN not in facts.run or isinstance(trained, str):
        return Terms()
    loss = curve_of(*trained)
    found = [_term(facts, function, loss) for function in trained_functions(facts)]
    known = tuple(term for term in found if term is not None)
    is_alone = sum(term.share for term in known) > _ALL
    may_have_adversary = not is_alone or any(term.is_learned for term in known)
    stuck = tuple(
        term
        for term in known
        if term.is_stuck and not (may_have_adversary and _is_balanced(facts, term.function))
    )
    return Terms(known, stuck)


def _term(facts: "Facts", function: str, loss: Curve) -> Term | None:
    """Return a term if it is known and makes up enough of the loss, else None."""
    means, baseline = facts.run[LOSS_MEAN].get(function), constant_of(facts, function, 1.0)
    if means is None or isinstance(baseline, str):
        return None
    curve = curve_of(function, means)
    if not len(curve) or not _STEADY[0] < baseline.drift < _STEADY[1]:
        return None
    chance = compared(facts, curve, baseline, Limits(), LOSS_MEAN)
    if isinstance(chance, str):
        return None
    initially, finally_ = _share(curve, loss, 0, 0.1), _share(curve, loss, 0.9, 1)
    return Term(chance, initially) if max(initially, finally_) > _SHARE else None


def _share(term: Curve, loss: Curve, begin: float, end: float) -> float:
    whole = np.abs(loss.part(begin, end))
    part = term.part(begin, end)
    if not len(whole) or not len(part):
        return 0.0
    return midmean(part) / max(midmean(whole), 1e-30)


def _is_balanced(facts: "Facts", function: str) -> bool:
    """Return whether a term tells two classes apart that are about as frequent."""
    largest = most_frequent(facts, function)
    is_binary = function.startswith("binary") or last(facts, TARGET_CLASSES, function) == 2
    return is_binary and (largest is None or largest < _BALANCED)
