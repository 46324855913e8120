"""Meta: what is known of a run beside its readings and events, as `meta.json` holds it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holter.record.typed import NAME, from_json, to_json


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that trained."""

    host: str = ""
    system: str = ""
    processor: str = ""
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class Git:
    """The commit of the working directory."""

    commit: str
    dirty: bool  # there were changes that are not committed
    diff: str = ""  # these changes, as `git diff HEAD` prints them; the beginning if they are long


@dataclass(frozen=True, slots=True)
class Environment:
    """The command, the code, the machine and the moment in which a run was made."""

    command: tuple[str, ...] = ()
    module: str | None = None  # of `python -m`
    script_digest: str | None = None  # SHA-256 of the script's source
    folder: str | None = None  # the working directory
    started: str | None = None  # ISO 8601
    python: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)  # by package
    machine: Machine = field(default_factory=Machine)
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment
    git: Git | None = None

    @property
    def script(self) -> str | None:
        """The script or module with its arguments, as one types them; None if it was no script."""
        if self.module is not None:
            return shlex.join(["-m", self.module, *self.command[1:]])
        if not self.command or not self.command[0].endswith(".py"):
            return None
        return shlex.join(self.command)


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model that is trained."""

    name: str
    class_name: str = field(metadata={NAME: "class"})
    parameters: int = 0  # elements
    trainable: int = 0
    mode_dependent_modules: int = 0


@dataclass(frozen=True, slots=True)
class OptimizerSummary:
    """An optimizer that trains."""

    label: str
    class_name: str = field(metadata={NAME: "class"})
    groups: int = 1


class ParameterSummary(NamedTuple):
    """A parameter of a model."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class LogSource:
    """The log of another tool that a run was imported from."""

    kind: str
    path: str = ""
    names: Mapping[str, str] = field(default_factory=dict)  # signal -> name in the log
    ignored: tuple[str, ...] = ()  # names that stand for no signal
    competing: str = ""  # a name of a training whose losses may compete, if there is one


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known of a run; empty or None where nothing is."""

    status: str | None = None  # "running", "finished", "failed", "interrupted"
    steps: int | None = None  # as the recorder counted
    duration: float | None = None  # seconds
    seed: int | None = None
    model: tuple[ModelSummary, ...] = ()
    optimizers: tuple[OptimizerSummary, ...] = ()
    parameters: Mapping[str, ParameterSummary] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what could not be recorded, a sentence each
    lost_records: int = 0
    source: LogSource | None = None  # if it was imported
    environment: Environment = field(default_factory=Environment)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Meta":
        """Read the content of `meta.json`, of any version of holter."""
        return from_json(cls, {**document, "environment": document})

    def to_json(self) -> dict[str, Any]:
        """Return the content of `meta.json`; the environment has no level of its own there."""
        document: dict[str, Any] = to_json(self)
        return {**document.pop("environment"), **document}
