"""A sweep over seeds, as text and as JSON."""

import json
from typing import Any

from holter.diagnosis.comparing.seeds import Duel, SeedReport, Variant
from holter.diagnosis.comparing.statistics import Interval
from holter.reports._lines import BLANK, Line, hanging, painted
from holter.reports._numbers import count, number, percent
from holter.reports._tables import table_lines
from holter.reports.experiments import Cell, ResultTable


def render(report: SeedReport, *, width: int = 96, color: bool = False) -> str:
    """Return the sweep as text."""
    lines = hanging(headline(report), width=width, lead=(("holter: ", "bold"),))
    columns: tuple[str, ...] = (
        "variant",
        "runs",
        "mean",
        "std",
        "95 % low",
        "95 % high",
        "min",
        "max",
        "diverged",
    )
    rows = tuple(_row(variant) for variant in report.variants)
    if not any(variant.diverged for variant in report.variants):
        columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
    better = "higher" if report.higher else "lower"
    title = f"{report.metric} ({better} is better)"
    lines += [BLANK, *table_lines(ResultTable("seeds", title, columns, rows), width)]
    if report.duels:
        title = f"difference to {report.duels[0].against}, with {percent(report.level)} intervals"
        columns = ("variant", "difference", "low", "high", "p", "bootstrap", "verdict")
        duels = tuple(map(_duel, report.duels))
        lines += [BLANK, *table_lines(ResultTable("seeds", title, columns, duels), width)]
    lines += _missing(report, width)
    return painted(lines, color=color)


def render_json(report: SeedReport) -> str:
    """Return the sweep for programs."""
    document: dict[str, Any] = {
        "metric": report.metric,
        "higher_is_better": report.higher,
        "complete": report.is_complete,
        "variants": [_variant(variant) for variant in report.variants],
        "comparisons": [
            {
                "variant": duel.name,
                "against": duel.against,
                "level": report.level,
                "difference": None if duel.result is None else duel.result.difference,
                "interval": _pair(None if duel.result is None else duel.result.interval),
                "p": None if duel.result is None else duel.result.p,
                "bootstrap": _pair(None if duel.result is None else duel.result.bootstrap),
                "better_beyond_noise": duel.is_better,
                "says": duel.says,
            }
            for duel in report.duels
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def headline(report: SeedReport) -> str:
    """Return the result in one sentence."""
    decided = [duel for duel in report.duels if duel.is_better is not None]
    if decided:
        first = max(decided, key=lambda duel: abs(duel.result.difference) if duel.result else 0)
        names = (first.name, first.against) if first.is_better else (first.against, first.name)
        means = {each.name: each.sample.mean for each in report.variants if each.sample}
        return (
            f"{names[0]} beats {names[1]} beyond noise: {report.metric} {number(means[names[0]])}"
            f" instead of {number(means[names[1]])}"
        )
    if report.duels:
        return f"no variant differs from {report.duels[0].against} in {report.metric} beyond noise"
    variant = report.variants[0]
    if variant.sample is None:
        return f"no run has {report.metric}"
    spread = "" if variant.sample.std is None else f" ± {number(variant.sample.std)}"
    runs = count(variant.sample.count, "run")
    return f"{report.metric} is {number(variant.sample.mean)}{spread} over {runs}"


def _row(variant: Variant) -> tuple[Cell, ...]:
    sample, values = variant.sample, variant.values
    if sample is None:
        return (variant.name, 0, *(None,) * 6, variant.diverged)
    interval = (None, None) if sample.interval is None else _ends(sample.interval)
    return (
        *(variant.name, sample.count, sample.mean, sample.std, *interval),
        *(min(values), max(values), variant.diverged),
    )


def _duel(duel: Duel) -> tuple[Cell, ...]:
    result = duel.result
    if result is None:
        return (duel.name, *(None,) * 5, duel.says)
    resampled = (
        "" if result.bootstrap is None else " to ".join(map(number, _ends(result.bootstrap)))
    )
    return duel.name, result.difference, *_ends(result.interval), result.p, resampled, duel.says


def _missing(report: SeedReport, width: int) -> list[Line]:
    lines: list[Line] = []
    for variant in report.variants:
        for reading in variant.missing:
            text = f"{variant.name}, seed {reading.seed}: {reading.why}"
            lines += hanging(text, width=width, lead=(("  ", ""),), hang=2)
    return [BLANK, (("without a value", "bold"),), *lines] if lines else []


def _variant(variant: Variant) -> dict[str, Any]:
    sample = variant.sample
    return {
        "name": variant.name,
        "command": variant.command,
        "runs": len(variant.readings),
        "mean": sample and sample.mean,
        "std": sample and sample.std,
        "interval": _pair(None if sample is None else sample.interval),
        "diverged": variant.diverged,
        "values": [
            {"seed": each.seed, "value": _plain(each.value), "why": each.why or None}
            for each in variant.readings
        ],
    }


def _plain(value: float | None) -> float | str | None:
    finite = value is None or abs(value) < float("inf")
    return value if finite else str(value)


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(_ends(interval))


def _ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high
