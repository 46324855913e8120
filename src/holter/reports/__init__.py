"""Reports: renderings of a checkup, one per module, found by name and imported when needed.

What belongs here turns a run and a checkup into text. Reports decide nothing and do not import
torch. Modules with an underscore are shared; `experiments/` holds the results of experiments as
tables that every report renders, `plots/` their pictures, `comparisons/` what several runs show.
"""

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holter.diagnosis.engine import Checkup
    from holter.record import Run

_SHARED = frozenset({"comparisons", "experiments", "plots"})  # packages that are no reports

REPORTS = tuple(
    sorted(
        module.name
        for module in pkgutil.iter_modules(__path__)
        if module.name not in _SHARED and not module.name.startswith("_")
    )
)


class Render(Protocol):
    """The function that every report module offers under the name `render`."""

    def __call__(self, run: "Run", checkup: "Checkup") -> str:
        """Return the whole report, ending with a newline."""


def report(name: str) -> Render:
    """Return the report of that name, one of `REPORTS`."""
    if name not in REPORTS:
        raise ValueError(f"there is no report {name!r}; there are {', '.join(REPORTS)}")
    render: Render = import_module(f"{__name__}.{name}").render
    return render
