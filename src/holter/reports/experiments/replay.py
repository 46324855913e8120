"""A captured failure that was replayed: reproduced or not, its birth, the ladder, data or state."""

from holter.diagnosis.facts.replays import replayed
from holter.record import Run
from holter.reports._lines import BLANK, Line, hanging

_COLOR = {"cures": "green", "worsens": "red", "does not": "", "not applicable": "dim"}


def lines(run: Run, width: int) -> list[Line]:
    """What the last replay showed."""
    replay = replayed(run)
    if replay is None:
        return []
    shown: list[Line] = [(("replay", "bold"), (f"  of step {replay.failing}", ""))]
    shown += _item(replay.says, width)
    if replay.onset < replay.failing:
        before = replay.failing - replay.onset
        shown += _item(f"out of its band since step {replay.onset}, {before} steps before", width)
    if replay.birth is not None:
        shown += _item(replay.birth.says, width)
        if replay.birth.line:
            shown += _item(f"{replay.birth.where}: `{replay.birth.line.strip()}`", width)
    if replay.rungs:
        shown.append(BLANK)
        column = max(map(len, replay.rungs)) + 2
        for name, rung in replay.rungs.items():
            lead: Line = (
                (f"  {name:<{column}}", ""),
                (f"{rung.outcome:<16}", _COLOR.get(rung.outcome, "")),
            )
            shown += hanging(rung.says, width=width, lead=lead, style="dim")
    if replay.ladder is not None and replay.ladder.minimal:
        shown += _item(f"the least that cures it: {replay.ladder.minimal}", width)
    if replay.triage is not None:
        shown += _item(replay.triage.says, width)
        if replay.triage.samples:
            names = ", ".join(map(str, replay.triage.samples))
            shown += _item(
                f"samples of the batch that break the step by themselves: {names}", width
            )
    return shown


def _item(text: str, width: int) -> list[Line]:
    return hanging(text, width=width, lead=(("  ", ""),), hang=2)
