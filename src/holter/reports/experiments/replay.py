"""A captured failure that was replayed: reproduced or not, its birth, the ladder, data or state."""

from typing import Any

from holter.record import Run
from holter.reports._lines import BLANK, Line, hanging

_COLOR = {"cures": "green", "worsens": "red", "does not": "", "not applicable": "dim"}


def lines(run: Run, width: int) -> list[Line]:
    """What the last replay showed."""
    told = _last(run, "reproduction")
    if told is None:
        return []
    shown: list[Line] = [(("replay", "bold"), (f"  of step {told['failing']}", ""))]
    shown += _item(told["says"], width)
    if told["onset"] < told["failing"]:
        before = told["failing"] - told["onset"]
        shown += _item(f"out of its band since step {told['onset']}, {before} steps before", width)
    if (birth := _last(run, "birth")) is not None:
        shown += _item(birth["birth"]["says"], width)
        where = birth["birth"]
        if where["line"]:
            shown += _item(f"{where['where']}: `{where['line'].strip()}`", width)
    climbed = _since(run, "rung")
    if climbed:
        shown.append(BLANK)
        column = max(len(each["name"]) for each in climbed) + 2
        for each in climbed:
            lead: Line = (
                (f"  {each['name']:<{column}}", ""),
                (f"{each['outcome']:<16}", _COLOR[each["outcome"]]),
            )
            shown += hanging(each["says"], width=width, lead=lead, style="dim")
    if (ladder := _last(run, "ladder")) is not None and ladder["minimal"]:
        shown += _item(f"the least that cures it: {ladder['minimal']}", width)
    if (found := _last(run, "triage")) is not None:
        shown += _item(found["says"], width)
        if found["samples"]:
            names = ", ".join(map(str, found["samples"]))
            shown += _item(
                f"samples of the batch that break the step by themselves: {names}", width
            )
    return shown


def _item(text: str, width: int) -> list[Line]:
    return hanging(text, width=width, lead=(("  ", ""),), hang=2)


def _last(run: Run, kind: str) -> Any:
    """The last event of a kind, of the last replay."""
    found = _since(run, kind)
    return found[-1] if found else None


def _since(run: Run, kind: str) -> list[Any]:
    places = [n for n, event in enumerate(run.events) if event.kind == "reproduction"]
    first = places[-1] if places else 0
    return [event.data for event in run.events[first:] if event.kind == kind]
