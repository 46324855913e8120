"""Events: what happened once in a run, with a class for each kind.

`kind` is the name of an event in `events.jsonl`, and the fields of its class are its fields there.
"""

from holter.record.events._event import *
from holter.record.events.evaluation import *
from holter.record.events.experiments import *
from holter.record.events.ranks import *
from holter.record.events.replays import *
from holter.record.events.source import *
from holter.record.events.training import *
