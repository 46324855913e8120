"""How rules put names and numbers into sentences."""

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


def lacking(**needed: tuple[int, int]) -> str:
    """Of what there is too little, each with what there is and what it takes."""
    return ", ".join(
        f"{there} of the {takes} {name.replace('_', ' ')} needed"
        for name, (there, takes) in needed.items()
        if there < takes
    )
