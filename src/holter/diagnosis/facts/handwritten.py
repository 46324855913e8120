"""Losses that a script computes itself, recorded under the torch function that they amount to."""

from typing import TYPE_CHECKING

from holter.record.signals import LOSS_HANDWRITTEN

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


def is_handwritten(facts: "Facts", function: str) -> bool:
    """Return whether the script computes this loss function itself."""
    if LOSS_HANDWRITTEN not in facts.run:
        return False
    calls = facts.run[LOSS_HANDWRITTEN].get(function)
    return calls is not None and len(calls) > 0


def loss_name(facts: "Facts", function: str) -> str:
    """Return the name of a loss function for a sentence: `the hand-written mse_loss`."""
    return f"the hand-written {function}" if is_handwritten(facts, function) else function
