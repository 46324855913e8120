"""Numbers and findings as JSON: NaN and infinities are strings, which JavaScript reads back."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from holter.record import Series
from holter.record.findings import Finding
from holter.reports.html._sampling import Thinned


def numbers(values: Iterable[float]) -> list[float | str]:
    """Return numbers with six digits; `Number()` of JavaScript reads those that are strings."""
    return [_number(float(value)) for value in np.asarray(values, np.float64).tolist()]


def plain_series(series: Series | Thinned) -> dict[str, Any]:
    """Return the steps and values of a series."""
    return {"steps": series.steps.tolist(), "values": numbers(series.values)}


def plain_finding(finding: Finding) -> dict[str, Any]:
    """Return what a card shows of a finding."""
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "confidence": str(finding.confidence),
        "preview": finding.preview,
        "summary": finding.summary,
        "onset": finding.onset,
        "fix": finding.fix,
    }


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return float(f"{value:.6g}")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
