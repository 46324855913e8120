"""Changes: the library of interventions on a training, each defined once, for every experiment.

One file a family: learning rates, clipping, dropout, precision, kernels, modes, optimizers,
weights, and what the model and the loss are given. An experiment trains inside `change.applied` and
compares that with the same training unchanged; what the difference means is for rules to say.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

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


@contextmanager
def _as_it_is(setup: Setup) -> Iterator[Setup]:
    yield setup


UNCHANGED = Change(TrialName(TrialKind.UNCHANGED), "Train without a change.", _as_it_is)
