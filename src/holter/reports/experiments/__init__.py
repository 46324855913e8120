"""Results of experiments as data: tables and charts that every report renders, one module each."""

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from holter.record import Run

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Chart:
    """A curve; `interval` marks the low end, the choice and the high end on the x axis."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    x_label: str = ""
    y_label: str = ""
    interval: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One table of an experiment's results. Numbers are numbers; None is an empty cell."""

    experiment: str
    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str, ...] = ()
    chart: Chart | None = None


class Results(Protocol):
    """The function that every module of this package offers under the name `results`."""

    def __call__(self, run: Run) -> list[ResultTable]:
        """Return the tables of one experiment; none where the run has no readings of it."""


def all_results(run: Run) -> list[ResultTable]:
    """Return the tables of every experiment whose readings are in the run."""
    tables: list[ResultTable] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        results: Results = import_module(f"{__name__}.{name}").results
        tables += results(run)
    return tables
