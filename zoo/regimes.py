"""Regimes: how a specimen is recorded. Read whole, as short runs are, or sampled, as long ones are.

Sampled recordings have no allowance, so that the budget applies from the first step, and those of
the zoo's workloads are trained on ten times the data: more steps, not more epochs, because runs
over the same data for longer would be other runs (they overfit). With more data some faults do no
harm any more; stretched recordings, which are read whole, tell these from what sampling misses.
"""

import math
import re
from enum import StrEnum

from zoo.specimens import Specimen

STRETCH = 10
# In each workload, the numbers that say how much data there is.
_COUNTS = {
    "actor_critic": (270,),
    "autoencoder_vae": (2048, 512),
    "causal_lm": (1760, 1600),
    "cnn_batchnorm": (1536, 512),
    "contrastive": (2304, 2048),
    "encoder_classifier": (1920, 400),
    "finetuning": (2048, 512),
    "gan": (2560,),
    "gru_tagger": (2160, 1920),
    "lstm": (1600, 1280),
    "regression_mlp": (2560, 2048),
    "resnet": (1280, 512),
    "tabular_mlp": (2560, 2048),
}


class Regime(StrEnum):
    """How deep the steps of a recording are read."""

    WHOLE = "whole"
    STRETCHED = "stretched"
    SAMPLED = "sampled"


def stretched(specimen: Specimen, script: str) -> str:
    """The script of a specimen with ten times the data; one without such numbers as it is."""
    counts = _COUNTS.get(specimen.workload, ())
    if not counts:
        return script
    pattern = re.compile(rf"(?<![\w.])({'|'.join(map(str, counts))})(?![\w.])")
    return pattern.sub(lambda found: str(STRETCH * int(found.group())), script)


def begin(regime: Regime) -> None:
    """Prepare this process for recordings of a regime."""
    from holter.watching import budget

    budget.ALLOWANCE = {Regime.SAMPLED: 0.0, Regime.STRETCHED: math.inf}.get(
        regime, budget.ALLOWANCE
    )
