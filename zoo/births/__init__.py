"""Births: steps in which something that is not finite is born, with the truth; and healthy ones.

A specimen is a function that returns a `Step`. The line that gives birth ends with `# born here`.
`python -m zoo.births` judges `holter.lab.birth.find` on all of them.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from torch import Tensor, nn
from torch.optim import Optimizer

MARK = "# born here"


@dataclass(frozen=True, slots=True)
class Step:
    """A training step: what `find` is given."""

    step: Callable[[], Tensor]
    models: Mapping[str, nn.Module]
    optimizers: Sequence[Optimizer] = ()
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class Specimen:
    """A step and the truth about it; without an operation it is healthy."""

    build: Callable[[], Step]
    operation: str = ""
    kind: str = ""
    phase: str = ""
    samples: tuple[int, ...] = ()
    module: str = ""
    dtype: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.build.__name__

    @property
    def healthy(self) -> bool:
        """Whether nothing is born in it that is not finite."""
        return not self.operation

    @property
    def why(self) -> str:
        """One sentence about it."""
        return (self.build.__doc__ or "").strip()

    @property
    def where(self) -> str:
        """File and line of the birth, from the top of the repository; empty if torch's own."""
        lines, first = inspect.getsourcelines(self.build)
        marked = [first + n for n, line in enumerate(lines) if line.rstrip().endswith(MARK)]
        file = f"zoo/births/{self.build.__module__.rpartition('.')[2]}.py"
        return f"{file}:{marked[0]}" if marked else ""


Build = Callable[[], Step]


def born(
    operation: str,
    kind: str,
    *,
    phase: str = "forward",
    samples: tuple[int, ...] = (),
    module: str = "",
    dtype: str = "float32",
) -> Callable[[Build], Specimen]:
    """Mark a function as a specimen with this truth."""
    return lambda build: Specimen(build, operation, kind, phase, samples, module, dtype)


def healthy(build: Build) -> Specimen:
    """Mark a function as a specimen in which nothing is wrong."""
    return Specimen(build)


@cache
def corpus() -> tuple[Specimen, ...]:
    """All specimens, by file."""
    found = []
    for info in iter_modules(__path__):
        if not info.name.startswith("_"):
            module = import_module(f"{__name__}.{info.name}")
            found += [each for each in vars(module).values() if isinstance(each, Specimen)]
    return tuple(found)
