"""The recording of a training: a folder of append-only files that any process may read."""

from holter.run.reader import Event, Rows, Run, Series, Table, follow
from holter.run.writer import Writer

__all__ = ["Event", "Rows", "Run", "Series", "Table", "Writer", "follow"]
