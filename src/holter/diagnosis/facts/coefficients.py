"""The constants that a loss multiplies its terms by: whether a lower loss is a better one."""

from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.robust import Values
from holter.record.signals import LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE, Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEWEST = 5  # readings
_ONE_SIGN = 0.9  # balance from which on nearly all constants of a step have one sign
_SHARE = 0.1  # of the steps that must have constants of the other sign
_VARIES = 2.0  # high over low size of constants that decide how high the loss is


def no_order(facts: "Facts") -> str | None:
    """Return why a lower loss is not a better one, or None if nothing speaks against that.

    The terms of a policy gradient are multiplied by returns or advantages. Such a loss has the
    gradient of the expected return, but its value says nothing of it. Of a log, names tell.
    """
    source = facts.run.meta.source
    if source is not None and source.competing:
        return (
            f"the log has {source.competing}, as reinforcement learning or adversarial training"
            " does: a lower loss is not necessarily better"
        )
    balance, size = (
        _values(facts, signal) for signal in (LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE)
    )
    if len(balance) < _FEWEST:
        return None
    mixed = float(np.mean(np.abs(balance) < _ONE_SIGN))
    least = min(float(np.mean(balance > 0)), float(np.mean(balance < 0)))
    if max(mixed, least) >= _SHARE:
        return (
            "the loss multiplies its terms by constants of both signs, as a policy gradient does"
            " with advantages: a lower loss is not a better one"
        )
    low, high = (float(value) for value in np.quantile(size, (0.1, 0.9)))
    if high <= _VARIES * low:
        return None
    return (
        "the loss multiplies its terms by constants, as a policy gradient does with returns; they"
        f" vary between {low:.2g} and {high:.2g}, and the loss with them"
    )


def _values(facts: "Facts", signal: Signal) -> Values:
    series = facts.run[signal].get("") if signal in facts.run else None
    kept = np.empty(0) if series is None else series.values[np.isfinite(series.values)]
    return kept.astype(np.float64)
