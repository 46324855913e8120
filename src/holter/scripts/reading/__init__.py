"""What the source of a script shows: statements that do something else than they say.

Each package is about one subject of mistakes; a function with `@reads` finds one kind of them in a
syntax tree. Nothing of the script is executed or imported.
"""

from holter.scripts.reading.files import events
from holter.scripts.reading.reader import read

__all__ = ["events", "read"]
