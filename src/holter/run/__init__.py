"""The recording of a training: a folder of append-only files that any process may read."""

from holter.run.journal import Event
from holter.run.reader import Run, follow, verify
from holter.run.table import Chunk, Rows, Series, Table
from holter.run.writer import Writer

__all__ = ["Chunk", "Event", "Rows", "Run", "Series", "Table", "Writer", "follow", "verify"]
