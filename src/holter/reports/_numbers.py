"""Numbers as people read them: three significant digits, thousands separated."""

import math


def number(value: float | int) -> str:
    """Return `0.0123`, `1.61`, `-3`, `12,400`, `1.2e-09`, `NaN`, `infinity`."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def percent(share: float) -> str:
    """Return a share in percent: no decimals above 10 %, two significant digits below."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def count(quantity: int, noun: str) -> str:
    """Return `1 step` or `300 steps`."""
    return f"{quantity:,} {noun}" if quantity == 1 else f"{quantity:,} {noun}s"
