"""What the source of a script shows: statements that do something else than they say.

Each file finds one kind of mistake in a syntax tree. Nothing is executed or imported.
"""

from holter.scripts.reading.files import events
from holter.scripts.reading.reader import read

__all__ = ["events", "read"]
