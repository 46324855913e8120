"""The layers of a model before its first step."""

from holter.record import Run
from holter.record.signals import INIT_ACTIVATION_STD, INIT_GRAD_RMS, INIT_WEIGHT_STD, Signal
from holter.reports._lines import Line

_MOST = 12  # layers on the screen: the first and the last of more


def lines(run: Run, width: int) -> list[Line]:  # noqa: ARG001  (a table of fixed columns)
    """Spread of activations, weights and gradients, in the order of execution."""
    if INIT_ACTIVATION_STD not in run:
        return []
    activations = {name: float(s.values[0]) for name, s in run[INIT_ACTIVATION_STD].items()}
    weights = _of_module(run, INIT_WEIGHT_STD)
    gradients = _of_module(run, INIT_GRAD_RMS)
    names = list(activations)
    column = max(map(len, names), default=0) + 2
    head = f"  {'layer':<{column}}{'activations':>12}{'weights':>12}{'gradients':>12}"
    table: list[Line] = [(("before the first step", "bold"),), ((head, "dim"),)]
    for place, name in enumerate(names):
        if len(names) > _MOST and _MOST // 2 <= place < len(names) - _MOST // 2:
            if place == _MOST // 2:
                table.append(((f"  ... {len(names) - _MOST} more", "dim"),))
            continue
        cells = (activations[name], weights.get(name), gradients.get(name))
        row = "".join(f"{'' if cell is None else format(cell, '.3g'):>12}" for cell in cells)
        table.append(((f"  {name:<{column}}{row}", ""),))
    return table


def _of_module(run: Run, signal: Signal) -> dict[str, float]:
    if signal not in run:
        return {}
    found: dict[str, float] = {}
    for name, series in run[signal].items():
        found.setdefault(name.rpartition(".")[0], float(series.values[0]))
    return found
