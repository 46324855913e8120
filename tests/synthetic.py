"""Runs made by hand, in memory: milliseconds, and no torch."""

from collections.abc import Mapping, Sequence

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import Rule
from holter.record import Event, Meta, Run, Series
from holter.record.events import Occurrence
from holter.record.findings import Finding, Verdict
from holter.record.signals import Signal


def series(values: Sequence[float] | np.ndarray, steps: Sequence[int] | None = None) -> Series:
    array = np.asarray(values, np.float32)
    at = np.arange(len(array)) if steps is None else np.asarray(steps)
    return Series(at.astype(np.int64), array)


def run_of(
    signals: Mapping[Signal, Mapping[str, Sequence[float] | np.ndarray | Series]],
    *,
    events: Sequence[Event[Occurrence]] = (),
    meta: Meta | None = None,
) -> Run:
    """A run from plain lists: `run_of({LOSS: {"": [1, 2, 3]}})`."""
    made = {
        signal: {
            owner: values if isinstance(values, Series) else series(values)
            for owner, values in owners.items()
        }
        for signal, owners in signals.items()
    }
    return Run.of(made, events=events, meta=meta)


def said(rule: Rule, run: Run, **options: object) -> list[Verdict]:
    """All that a rule says of a run, without the engine around it."""
    return list(rule.function(Facts(run), **options))


def found(rule: Rule, run: Run, **options: object) -> list[Finding]:
    """The findings of a rule on a run."""
    return [each for each in said(rule, run, **options) if isinstance(each, Finding)]
