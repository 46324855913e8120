"""How rules put names and numbers into sentences."""

import math
from collections.abc import Sequence


def some(names: Sequence[str], *, limit: int = 3) -> str:
    """A few names and how many more there are: `a, b, c and 4 more`."""
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def of(owner: str) -> str:
    """` of NAME` for a named owner, nothing for the run itself."""
    return f" of {owner}" if owner else ""


def percent(share: float) -> str:
    """Return a share in percent: no decimals from 10 % on, two significant digits otherwise."""
    return f"{100 * share:.0f} %" if 0.1 <= share < 100 else f"{100 * share:.2g} %"


def portion(share: float) -> str:
    """Return a share of a group for a sentence: `none`, `all`, or a percentage."""
    return {0.0: "none", 1.0: "all"}.get(share) or percent(share)


def number(value: float, digits: int = 3) -> str:
    """Return a number for a sentence: so many significant digits, `NaN`, `infinity`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return f"{value:.{digits}g}"


def unmet(*needs: tuple[bool, str]) -> str:
    """Return what a rule needs and does not have: the sentences of the conditions that fail."""
    return ", ".join(says for holds, says in needs if not holds)


def lacking(**needed: tuple[int, int]) -> str:
    """Of what there is too little, each with what there is and what it takes."""
    return ", ".join(
        f"{there} of the {takes} {name.replace('_', ' ')} needed"
        for name, (there, takes) in needed.items()
        if there < takes
    )


def duration(seconds: float) -> str:
    """Return a time with a unit that suits it: `12.5 ms`."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def size(count: float) -> str:
    """Return a number of bytes with a unit that suits it: `1.5 GB`."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} bytes"
