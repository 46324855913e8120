"""A captured failure that was replayed: its birth, the changes that were tried, data or state."""

from holter.diagnosis.facts.replays import CureOutcome, Replayed, replayed
from holter.record import Run
from holter.reports._lines import BLANK, Line, hanging

_COLOR = {
    CureOutcome.CURES: "green",
    CureOutcome.WORSENS: "red",
    CureOutcome.DOES_NOT: "",
    CureOutcome.NOT_APPLICABLE: "dim",
}


def lines(run: Run, width: int) -> list[Line]:
    """What the last replay showed."""
    found = replayed(run)
    if found is None:
        return []
    shown: list[Line] = [(("replay", "bold"), (f"  of step {found.failing}", ""))]
    shown += _item(found.says, width)
    if found.onset < found.failing:
        before = found.failing - found.onset
        shown += _item(f"out of its band since step {found.onset}, {before} steps before", width)
    if (birth := found.birth) is not None:
        shown += _item(birth.says, width)
        if birth.line:
            shown += _item(f"{birth.where}: `{birth.line.strip()}`", width)
    shown += _changes(found, width)
    if found.triage is not None:
        shown += _item(found.triage.says, width)
        if found.triage.samples:
            names = ", ".join(map(str, found.triage.samples))
            shown += _item(f"samples of the batch that fail by themselves: {names}", width)
    return shown


def _changes(found: Replayed, width: int) -> list[Line]:
    if not found.changes:
        return []
    shown: list[Line] = [BLANK]
    column = max(len(name) for name in found.changes) + 2
    for change in found.changes.values():
        lead: Line = (
            (f"  {change.name:<{column}}", ""),
            (f"{change.outcome:<16}", _COLOR[change.outcome]),
        )
        shown += hanging(change.says, width=width, lead=lead, style="dim")
    if found.all_tried and (cure := found.minimal_cure) is not None:
        shown += _item(f"the smallest change that cures it: {cure.name}", width)
    return shown


def _item(text: str, width: int) -> list[Line]:
    return hanging(text, width=width, lead=(("  ", ""),), hang=2)
