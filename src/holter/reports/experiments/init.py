"""The layers of a model before its first step."""

from holter.record import Run
from holter.record.signals import INIT_ACTIVATION_STD, INIT_GRAD_RMS, INIT_WEIGHT_STD, Signal
from holter.reports.experiments import ResultTable


def results(run: Run) -> list[ResultTable]:
    """Return the spread of activations, weights and gradients in the order of execution."""
    if INIT_ACTIVATION_STD not in run:
        return []
    weights, gradients = _by_module(run, INIT_WEIGHT_STD), _by_module(run, INIT_GRAD_RMS)
    rows = tuple(
        (layer, float(series.values[0]), weights.get(layer), gradients.get(layer))
        for layer, series in run[INIT_ACTIVATION_STD].items()
    )
    columns = ("layer", "activation std", "weight std", "gradient RMS")
    return [ResultTable("init", "before the first step", columns, rows)]


def _by_module(run: Run, signal: Signal) -> dict[str, float]:
    """Return the reading of the first parameter of each module."""
    if signal not in run:
        return {}
    readings: dict[str, float] = {}
    for parameter, series in run[signal].items():
        readings.setdefault(parameter.rpartition(".")[0], float(series.values[0]))
    return readings
