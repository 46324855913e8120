"""The model on its data: metrics beside baselines, slices, worst examples, suspected labels."""

from holter.diagnosis.facts.measured import Measured
from holter.record import Event, Run
from holter.record.events import (
    DataEvaluated,
    LabelsExamined,
    LabelSuspected,
    PassMeasured,
    SliceMeasured,
    WorstExample,
)
from holter.reports._evaluation import pass_tables
from holter.reports._numbers import percent
from holter.reports.experiments import ResultTable

_NAME = "evaluate"


def results(run: Run) -> list[ResultTable]:
    """Return the tables of the last evaluation."""
    evaluated = run.events_of(DataEvaluated)
    if not evaluated:
        return []
    what, since = evaluated[-1].what, evaluated[-1].wall
    tables = [_summary(what)]
    if what.counts is not None:
        measured = Measured("", "", what.data, "", (Event(0, 0.0, what.counts),))
        tables += [_renamed(table, what.counts) for table in pass_tables(measured)]
    slices = [event.what for event in run.events_of(SliceMeasured) if event.wall >= since]
    for by in dict.fromkeys(one.by for one in slices):
        tables.append(_slices([one for one in slices if one.by == by]))
    worst = [event.what for event in run.events_of(WorstExample) if event.wall >= since]
    if worst:
        rows = tuple(
            (one.index, one.loss, one.target, one.predicted, one.confidence) for one in worst
        )
        columns = ("index", "loss", "target", "predicted", "confidence")
        tables.append(ResultTable(_NAME, "samples with the largest losses", columns, rows))
    return [*tables, *_labels(run, since)]


def _summary(what: DataEvaluated) -> ResultTable:
    notes = [] if what.is_complete else ["out of time: only a part of the data was evaluated"]
    if not what.function:
        notes.append("the loss does not match a torch loss function: predictions are unknown")
    rows: list[tuple[str, float | int]] = [("samples", what.samples), ("mean loss", what.loss)]
    if what.auroc is not None:
        rows.append(("area under the ROC curve, of all scores", what.auroc))
    if what.average_precision is not None:
        rows.append(("average precision, of all scores", what.average_precision))
    return ResultTable(
        _NAME, f"the model on its {what.data} data", ("", ""), tuple(rows), tuple(notes)
    )


def _renamed(table: ResultTable, counts: PassMeasured) -> ResultTable:
    title = (
        f"metrics ({counts.targets:,} targets)"
        if table.title.startswith("evaluation")
        else table.title
    )
    return ResultTable(_NAME, title, table.columns, table.rows, table.notes, table.chart)


def _slices(groups: list[SliceMeasured]) -> ResultTable:
    first = groups[0]
    title = (
        f"error by {first.by} (explains {percent(first.explained)} of the losses' variance; groups"
        f" by chance {percent(first.noise)})"
    )
    rows = tuple((one.group, one.samples, one.loss, one.error) for one in groups)
    return ResultTable(_NAME, title, (first.by, "samples", "mean loss", "error rate"), rows)


def _labels(run: Run, since: float) -> list[ResultTable]:
    examined = [event.what for event in run.events_of(LabelsExamined) if event.wall >= since]
    suspected = [event.what for event in run.events_of(LabelSuspected) if event.wall >= since]
    tables = []
    for data in examined:
        rows = tuple(
            (one.index, one.given, one.suggested, one.quality)
            for one in suspected
            if one.data == data.data
        )
        title = f"likely label errors: {data.suspected} of {data.samples} {data.data} samples"
        columns = ("index", "label", "more likely", "quality")
        tables.append(ResultTable(_NAME, title, columns, rows))
    return tables
