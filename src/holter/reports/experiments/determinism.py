"""A step repeated from the same state: what differs, and what determinism costs."""

from holter.diagnosis.facts.repeats import Part, repetition
from holter.record import Run
from holter.record.signals import DETERMINISM_ELEMENTS, DETERMINISM_ULPS
from holter.reports.experiments import Cell, ResultTable


def results(run: Run) -> list[ResultTable]:
    """Return the differences between repetitions in both modes, and the duration of a step."""
    if DETERMINISM_ELEMENTS not in run or DETERMINISM_ULPS not in run:
        return []
    repeated = repetition(run)
    rows = tuple((*_cells(part, "as it is"),) for part in repeated.parts) + tuple(
        (*_cells(part, "deterministic"),) for part in repeated.deterministic
    )
    notes = []
    operation = repeated.operation
    if operation is not None:
        size = f", {operation.ulps:,.0f} ulps" if operation.cause == "kernel" else ""
        where = f" at {operation.where}" if operation.where else ""
        notes.append(
            f"first operation that differs: {operation.operation} ({operation.phase}{size}){where}"
        )
    if repeated.price:
        notes.append(f"with deterministic algorithms a step takes {repeated.price}")
    if repeated.refused:
        notes.append(f"no deterministic algorithm: {repeated.refused}")
    columns = ("algorithms", "result", "repetitions", "that differ", "elements", "ulps")
    title = "one step repeated from the same state"
    return [ResultTable("determinism", title, columns, rows, tuple(notes))]


def _cells(part: Part, mode: str) -> tuple[Cell, ...]:
    return mode, part.name, part.repeats, part.differing, part.elements, part.ulps
