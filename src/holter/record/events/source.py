"""Events about the source of the script."""

from dataclasses import dataclass
from typing import ClassVar

from holter.record.events._event import Occurrence

__all__ = ["CodePattern", "CodeRead"]


@dataclass(frozen=True, slots=True)
class CodeRead(Occurrence):
    """The source of the script, and of modules beside it, was read for patterns."""

    kind: ClassVar[str] = "code read"
    files: int
    lines: int


@dataclass(frozen=True, slots=True)
class CodePattern(Occurrence):
    """A statement that does something else than it says."""

    kind: ClassVar[str] = "code pattern"
    pattern: str
    where: str  # file and line
    code: str
    subject: str = ""  # the name that it is about
