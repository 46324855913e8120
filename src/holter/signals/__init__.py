"""The catalogue of everything a run may record: one `Signal` per measured quantity."""

from collections.abc import Mapping
from types import MappingProxyType

from holter.signals._signal import *
from holter.signals.activations import *
from holter.signals.controls import *
from holter.signals.data import *
from holter.signals.datasets import *
from holter.signals.geometry import *
from holter.signals.gradients import *
from holter.signals.histograms import *
from holter.signals.initial import *
from holter.signals.losses import *
from holter.signals.lr_range import *
from holter.signals.optimizers import *
from holter.signals.outputs import *
from holter.signals.overfit import *
from holter.signals.replays import *
from holter.signals.watch import *
from holter.signals.weights import *

CATALOGUE: Mapping[str, Signal] = MappingProxyType(
    {each.name: each for each in list(globals().values()) if isinstance(each, Signal)}
)
