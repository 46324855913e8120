"""The record: what both sides agree on, the side that writes a run and the side that reads it.

What belongs here is data and its format. Nothing imports torch.

- `signals/`: the catalogue of what may be recorded, one family a file; a new signal goes there.
- `events`, `meta`, `trials`, `births`, `typed`: typed events, meta data and names of trials.
- `findings`: what a rule may report. `functions`: the page and options of a rule or experiment.
- `format`, `segment`, `journal`, `writer`, `decimation`: how a run is written.
- `reader`, `table`, `folders`: how a run is found and read.
- `band`: what counts as a spike. `environment`: versions and machine of a run.
- `errors`, `notices`, `rich`: sentences and small tables for people.
"""

from holter.record.events import Event
from holter.record.meta import Meta
from holter.record.reader import Run, follow, verify
from holter.record.table import Chunk, Rows, Series, Table
from holter.record.writer import Writer

__all__ = ["Chunk", "Event", "Meta", "Rows", "Run", "Series", "Table", "Writer", "follow", "verify"]
