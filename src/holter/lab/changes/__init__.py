"""Changes: the library of interventions on a training, each defined once, for every experiment.

One file a family: learning rates, clipping, dropout, precision, kernels, modes, optimizers,
weights, and what the model and the loss are given. An experiment trains inside `change.applied` and
compares that with the same training unchanged; what the difference means is for rules to say.

A `TappedChange` needs no setup: it acts, through taps and hooks, on whatever trains in the process.
So it applies to a setup and to an unmodified script alike.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName


@dataclass(frozen=True, slots=True)
class Change:
    """A named, reversible intervention on a training.

    Inside `with change.applied(setup) as changed:` train `changed`. Afterwards everything that
    the change itself has touched is as before; what training has touched is left to `State`.
    """

    id: TrialName
    description: str  # one sentence
    applied: Callable[[Setup], AbstractContextManager[Setup]]


Altered = Callable[[], None]  # called whenever a change has altered something


@dataclass(frozen=True, slots=True)
class TappedChange:
    """A named, reversible intervention on everything that trains in this process.

    `entered` is given what to call whenever something was altered: a change that never calls it had
    nothing to change, and the training is the unchanged one bit for bit.
    """

    id: TrialName
    description: str  # one sentence
    entered: Callable[[Altered], AbstractContextManager[None]]

    @property
    def on_setup(self) -> Change:
        """The same intervention on the training of a setup."""
        return Change(self.id, self.description, partial(_entered, self))


@contextmanager
def _entered(change: TappedChange, setup: Setup) -> Iterator[Setup]:
    with change.entered(nothing):
        yield setup


def nothing() -> None:
    """Take no notice."""


@contextmanager
def _as_it_is(setup: Setup) -> Iterator[Setup]:
    yield setup


UNCHANGED = Change(TrialName(TrialKind.UNCHANGED), "Train without a change.", _as_it_is)
