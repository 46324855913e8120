"""The comparison: what each tool said of faults and of healthy runs, side by side."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.peers.peer import Alarm, Peer
from zoo.specimens import Specimen

_COLUMNS = (
    *("tool", "looks at", "faults + healthy runs"),
    *("named the cause", "of those it has an alarm for", "by chance"),
    *("said something else", "said nothing"),
    *("alarms a faulty run", "healthy runs with an alarm", "with an alarm or a note"),
    *("alarms a healthy run", "scripts it broke"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A tool in the table, and what it said: by specimen and seed."""

    title: str
    peer: Peer
    said: Mapping[tuple[str, int], Sequence[Alarm]]
    broke: int = 0  # scripts that did not survive it


def render(rows: Sequence[Row], truth: Mapping[str, Specimen]) -> str:
    """The table, and under it what each tool's alarms are worth."""
    lines = [
        f"| {' | '.join(_COLUMNS)} |",
        "|---|---" + "|--:" * (len(_COLUMNS) - 2) + "|",
        *(_line(row, truth) for row in rows),
        "",
        "| tool | alarm | faulty runs | where it is right | healthy runs |",
        "|---|---|--:|--:|--:|",
        *(line for row in _one_each(rows) for line in _alarms(row, truth)),
    ]
    return "\n".join(lines)


def _one_each(rows: Sequence[Row]) -> list[Row]:
    """The first row of each tool."""
    return list({row.peer.name: row for row in reversed(rows)}.values())[::-1]


def _line(row: Row, truth: Mapping[str, Specimen]) -> str:
    named = elsewhere = silent = covered = loud = loud_or_noted = 0
    on_faults: list[int] = []
    on_healthy: list[int] = []
    for (name, _), said in row.said.items():
        specimen = truth[name]
        told = [each for each in said if each.name not in row.peer.advice]
        alarms = len({each.name for each in told if not each.note})
        if specimen.healthy:
            on_healthy.append(alarms)
            loud += alarms > 0
            loud_or_noted += bool(told)
            continue
        on_faults.append(alarms)
        right = _right(specimen)
        names = row.peer.names(told, right)
        covered += row.peer.has_alarm_for(right)
        named += names
        elsewhere += bool(told) and not names
        silent += not told
    cells = (
        row.title,
        row.peer.covers,
        f"{len(on_faults)} + {len(on_healthy)}",
        _share(named, len(on_faults)),
        _share(named, covered),
        f"{_chance(row, truth):.0%}",
        _share(elsewhere, len(on_faults)),
        _share(silent, len(on_faults)),
        _mean(on_faults),
        _share(loud, len(on_healthy)),
        _share(loud_or_noted, len(on_healthy)),
        _mean(on_healthy),
        str(row.broke),
    )
    return f"| {' | '.join(cells)} |"


def _chance(row: Row, truth: Mapping[str, Specimen]) -> float:
    """How often what it says of a healthy run would have named a fault's cause."""
    healthy = [
        [each for each in said if each.name not in row.peer.advice]
        for (name, _), said in row.said.items()
        if truth[name].healthy
    ]
    causes = [_right(truth[name]) for name, _ in row.said if not truth[name].healthy]
    hits = sum(row.peer.names(said, right) for said in healthy for right in causes)
    return hits / max(1, len(healthy) * len(causes))


def _alarms(row: Row, truth: Mapping[str, Specimen]) -> list[str]:
    """Every alarm: how often on faults, how often right there, how often on healthy runs."""
    if row.peer.name == "holter":
        return []  # its own page has that rule by rule
    faulty: Counter[str] = Counter()
    right: Counter[str] = Counter()
    healthy: Counter[str] = Counter()
    for (name, _), said in row.said.items():
        for each in {str(alarm): alarm for alarm in said}.values():
            if truth[name].healthy:
                healthy[str(each)] += 1
            else:
                faulty[str(each)] += 1
                right[str(each)] += row.peer.names([each], _right(truth[name]))
    sick = sum(not truth[name].healthy for name, _ in row.said)
    sound = len(row.said) - sick
    return [
        f"| {row.title} | {alarm}{_advice(alarm, row.peer)} |"
        f" {_share(faulty[alarm], sick)} | {right[alarm]} | {_share(healthy[alarm], sound)} |"
        for alarm in sorted({*faulty, *healthy})
    ]


def _advice(alarm: str, peer: Peer) -> str:
    return " (advice)" if alarm.partition("/")[0] in peer.advice else ""


def _right(specimen: Specimen) -> set[str]:
    return {specimen.cause, *specimen.accepts}


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%} ({part} of {whole})" if whole else "-"


def _mean(counts: Sequence[int]) -> str:
    return f"{sum(counts) / len(counts):.1f}" if counts else "-"
