"""The catalogue of everything a run may record: one `Signal` per measured quantity."""

from collections.abc import Mapping
from types import MappingProxyType

from holter.record.signals._signal import *
from holter.record.signals.activations import *
from holter.record.signals.baselines import *
from holter.record.signals.controls import *
from holter.record.signals.cures import *
from holter.record.signals.data import *
from holter.record.signals.datasets import *
from holter.record.signals.distributions import *
from holter.record.signals.evaluation import *
from holter.record.signals.geometry import *
from holter.record.signals.gradients import *
from holter.record.signals.graphs import *
from holter.record.signals.histograms import *
from holter.record.signals.initial import *
from holter.record.signals.losses import *
from holter.record.signals.lr_range import *
from holter.record.signals.memory import *
from holter.record.signals.optimizers import *
from holter.record.signals.outputs import *
from holter.record.signals.overfit import *
from holter.record.signals.ranks import *
from holter.record.signals.replays import *
from holter.record.signals.reproducing import *
from holter.record.signals.responses import *
from holter.record.signals.stream import *
from holter.record.signals.throughput import *
from holter.record.signals.time import *
from holter.record.signals.watch import *
from holter.record.signals.weights import *

CATALOGUE: Mapping[str, Signal] = MappingProxyType(
    {each.name: each for each in list(globals().values()) if isinstance(each, Signal)}
)
