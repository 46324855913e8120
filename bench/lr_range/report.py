"""The comparison as tables: what each rule's suggestion trained to, and how often it was best."""

from collections.abc import Mapping, Sequence

import numpy as np

from bench.lr_range.measuring import HOLTER, SWEEPS_ONLY, Row
from bench.lr_range.workloads import UNSEEN

_SURE = 2.0  # standard errors by which two losses have to differ

_COLUMNS = (
    *("rule", "workloads where it is lowest", "within noise of the lowest", "plain", "noisy"),
    *("share of the best gain that is lost", "plain", "noisy"),
    *("no suggestion", "ends above its start", "steps"),
)

Key = tuple[str, bool]


def render(rows: Sequence[Row]) -> str:
    """All workloads in a row each, and above them a row a rule."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault((row.workload, row.noisy), []).append(row)
    rules = list(rows[0].rates)
    return "\n".join([*_summary(groups, rules), "", *_each(groups, rules)])


def _summary(groups: Mapping[Key, Sequence[Row]], rules: Sequence[str]) -> list[str]:
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" + "|--:" * (len(_COLUMNS) - 1) + "|"]
    for rule in rules:
        near = {key: _is_near(group, rule, rules) for key, group in groups.items()}
        lowest = sum(_lowest(group, rules) == rule for group in groups.values())
        lost = {key: _lost(group, rule, rules) for key, group in groups.items()}
        every = [row for group in groups.values() for row in group]
        none = sum(row.rates[rule] is None for row in every)
        above = sum(row.rates[rule] is not None and row.scores[rule] >= row.start for row in every)
        cells = [
            rule,
            f"{lowest}",
            f"**{sum(near.values())} of {len(near)}**",
            *(f"{sum(v for k, v in near.items() if k[1] is noisy)}" for noisy in (False, True)),
            f"{np.mean(list(lost.values())):.1%}",
            *(
                f"{np.mean([v for k, v in lost.items() if k[1] is noisy]):.1%}"
                for noisy in (False, True)
            ),
            f"{none} of {len(every)}",
            f"{above}",
            _steps(every, rule),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _each(groups: Mapping[Key, Sequence[Row]], rules: Sequence[str]) -> list[str]:
    lines = [
        f"| workload | start | noise | {' | '.join(rules)} |",
        "|---|--:|--:" + "|--:" * len(rules) + "|",
    ]
    for (name, noisy), group in groups.items():
        best = _lowest(group, rules)
        cells = [
            f"{name}{', noisy' if noisy else ''}{' *' if name in UNSEEN else ''}",
            f"{np.mean([row.start for row in group]):.3g}",
            f"± {noise(group):.2g}",
        ]
        for rule in rules:
            loss = _loss(group, rule)
            text = f"{loss:.3g}" if np.isfinite(loss) else "-"
            if rule == best:
                text = f"**{text}**"
            elif _is_near(group, rule, rules):
                text = f"{text} ="
            cells.append(text)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def as_low_as_any_peer(rows: Sequence[Row]) -> dict[Key, bool]:
    """Of each workload: whether holter's loss is within noise of the lowest of all peers."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault((row.workload, row.noisy), []).append(row)
    others = [rule for rule in rows[0].rates if rule not in (HOLTER, SWEEPS_ONLY)]
    return {
        key: _loss(group, HOLTER) <= min(_loss(group, rule) for rule in others) + noise(group)
        for key, group in groups.items()
    }


def noise(group: Sequence[Row]) -> float:
    """What two means over the seeds have to differ by: from trainings that differ in order only."""
    spreads = [np.var([row.scores[HOLTER], *row.again], ddof=1) for row in group if row.again]
    if not spreads:
        return 0.0
    return float(_SURE * np.sqrt(2 * np.mean(spreads) / len(group)))


def _loss(group: Sequence[Row], rule: str) -> float:
    """The mean over the seeds; a seed without a suggestion, or that fails, counts as its start."""
    return float(np.mean([_reached(row, rule) for row in group]))


def _reached(row: Row, rule: str) -> float:
    return min(row.scores[rule], row.start)


def _lowest(group: Sequence[Row], rules: Sequence[str]) -> str:
    return min(rules, key=lambda rule: _loss(group, rule))


def _is_near(group: Sequence[Row], rule: str, rules: Sequence[str]) -> bool:
    return _loss(group, rule) <= min(_loss(group, each) for each in rules) + noise(group)


def _lost(group: Sequence[Row], rule: str, rules: Sequence[str]) -> float:
    """The share of the largest gain of all rules that this one misses."""
    start = float(np.mean([row.start for row in group]))
    best = start - min(_loss(group, each) for each in rules)
    return (best - (start - _loss(group, rule))) / best


def _steps(rows: Sequence[Row], rule: str) -> str:
    taken = [row.steps[rule] for row in rows if rule in row.steps]
    return f"{np.mean(taken):.0f}" if taken else ""
