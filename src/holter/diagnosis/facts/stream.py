"""The samples that streamed by in training, pass by pass."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.outcome import OutcomeState
from holter.record.events import LoaderSeen
from holter.record.signals import (
    STREAM_COLLAPSED,
    STREAM_DISTINCT,
    STREAM_MEAN,
    STREAM_READ,
    STREAM_SAMPLES,
    STREAM_SEEN,
    STREAM_STD,
    STREAM_TOKENS,
    STREAM_VALUES,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

Values = npt.NDArray[np.float64]

_CODES = 32  # different numbers of inputs: fewer are codes, whose samples repeat by nature
_POSSIBLE = 1e4  # samples that tokens could make, for each sample of a pass: fewer repeat by chance
_WHOLE = 0.9  # of the samples of the longest pass
_LAGS = 2.0  # validation loss over training loss of a model that learned few samples only


@dataclass(frozen=True, slots=True)
class Stream:
    """The passes over one training loader, or over loaders that replace one another.

    What was not read in a pass is NaN.
    """

    loader: str  # the first
    setup: LoaderSeen | None
    steps: npt.NDArray[np.int64]  # at which each pass ended
    samples: Values
    read: Values
    distinct: Values
    seen: Values
    collapsed: Values
    mean: Values
    std: Values
    values: Values
    tokens: Values

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def claimed(self) -> int | None:
        """The number of samples that the data set says it has."""
        return None if self.setup is None else self.setup.samples

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Which passes delivered as many samples as the longest."""
        return np.asarray(self.samples >= _WHOLE * self.samples.max())

    @property
    def is_coded(self) -> bool:
        """Whether inputs hold so few different numbers that samples repeat by nature.

        Of tokens and categories, it is how many different samples they could make.
        """
        known = self.values[np.isfinite(self.values)]
        if not len(known):
            return True
        values = float(known.max())
        tokens = self.tokens[np.isfinite(self.tokens)]
        if not len(tokens):
            return values <= _CODES
        possible = float(tokens.min()) * np.log(max(values, 1.0))
        return bool(possible < np.log(_POSSIBLE * float(self.samples.max())))


def streams(facts: "Facts") -> list[Stream]:
    """Return the streams of a run, the one with most samples first."""
    if STREAM_SAMPLES not in facts.run:
        return []
    setups = {event.what.loader: event.what for event in facts.run.events_of(LoaderSeen)}
    groups: dict[object, list[str]] = {}
    for loader, passes in facts.run[STREAM_SAMPLES].items():
        if len(passes):
            groups.setdefault(_key(loader, setups.get(loader), len(passes)), []).append(loader)
    made = [_stream(facts, group, setups.get(group[0])) for group in groups.values()]
    return sorted(made, key=lambda stream: -float(stream.samples.sum()))


def failed(facts: "Facts") -> str | None:
    """Return how training or validation failed, or None."""
    outcome = facts.run_outcome
    if outcome.bad or outcome.state is OutcomeState.OVERFITS:
        return outcome.says
    curves = facts.validation
    if isinstance(curves, str) or not curves.is_comparable or not len(curves):
        return None
    validation, training = curves.final_validation, curves.final_training
    if validation <= _LAGS * training:
        return None
    return f"the validation loss ends at {validation:.3g}, the training loss at {training:.3g}"


def _key(loader: str, setup: LoaderSeen | None, passes: int) -> object:
    """Return what loaders have in common that a script creates for each epoch."""
    if setup is None or passes > 1:
        return loader
    return setup.batches, setup.batch_size, setup.samples, setup.order, setup.iterable


def _stream(facts: "Facts", loaders: list[str], setup: LoaderSeen | None) -> Stream:
    steps = np.concatenate([facts.run[STREAM_SAMPLES][loader].steps for loader in loaders])
    order = np.argsort(steps, kind="stable")

    def all_of(signal: Signal) -> Values:
        made = [_values(facts, signal, loader) for loader in loaders]
        return np.asarray(np.concatenate(made)[order], np.float64)

    return Stream(
        loaders[0],
        setup,
        steps[order],
        all_of(STREAM_SAMPLES),
        all_of(STREAM_READ),
        all_of(STREAM_DISTINCT),
        all_of(STREAM_SEEN),
        all_of(STREAM_COLLAPSED),
        all_of(STREAM_MEAN),
        all_of(STREAM_STD),
        all_of(STREAM_VALUES),
        all_of(STREAM_TOKENS),
    )


def _values(facts: "Facts", signal: Signal, loader: str) -> Values:
    """Return a value for each pass over a loader, NaN where there is none."""
    passes = facts.run[STREAM_SAMPLES][loader]
    made = np.full(len(passes), np.nan)
    if signal in facts.run and loader in facts.run[signal]:
        series = facts.run[signal][loader]
        at = np.isin(passes.steps, series.steps)
        made[at] = series.values[np.isin(series.steps, passes.steps)]
    return made
