"""Losses that a script computes itself, recorded under the torch function that they amount to."""

from typing import TYPE_CHECKING

from holter.record.events import HandwrittenLoss

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


def is_handwritten(facts: "Facts", function: str) -> bool:
    """Return whether the script computes this loss function itself."""
    return any(event.what.function == function for event in facts.run.events_of(HandwrittenLoss))


def loss_name(facts: "Facts", function: str) -> str:
    """Return the name of a loss function in a sentence, with its place if it is hand-written."""
    for event in facts.run.events_of(HandwrittenLoss):
        if event.what.function == function:
            where = f" ({event.what.where})" if event.what.where else ""
            return f"the hand-written {function}{where}"
    return function
