"""The recording of a training: a folder of append-only files that any process may read."""

from holter.record.events import Event
from holter.record.meta import Meta
from holter.record.reader import Run, follow, verify
from holter.record.table import Chunk, Rows, Series, Table
from holter.record.writer import Writer

__all__ = ["Chunk", "Event", "Meta", "Rows", "Run", "Series", "Table", "Writer", "follow", "verify"]
