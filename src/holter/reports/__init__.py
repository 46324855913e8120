"""The reports: renderings of a checkup, one a module, found by name and loaded when asked for."""

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holter.diagnosis.engine import Checkup
    from holter.record import Run

REPORTS = tuple(
    sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_"))
)


class Render(Protocol):
    """What every report module offers under the name `render`."""

    def __call__(self, run: "Run", checkup: "Checkup") -> str:
        """The whole report, ending with a newline."""


def report(name: str) -> Render:
    """The report of that name, one of `REPORTS`."""
    if name not in REPORTS:
        raise ValueError(f"there is no report {name!r}; there are {', '.join(REPORTS)}")
    render: Render = import_module(f"{__name__}.{name}").render
    return render
