"""Runs made by hand for the page, and what the page holds of them."""

import json
import re
from typing import Any

import numpy as np

from holter import Run, check
from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_STD,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    LOSS,
    LR,
    UPDATE_RATIO,
    VAL_LOSS,
    WEIGHT_HISTOGRAM,
    Signal,
)
from holter.record.signals.histograms import BINS
from holter.reports.html import render
from synthetic import run_of, series


def written(run: Run) -> str:
    """The page of a run, checked by all rules."""
    return render(run, check(run))


def drawings(page: str) -> list[dict[str, Any]]:
    """What the page draws."""
    found = re.search(r'<script type="application/json" id="drawings">(.*?)</script>', page, re.S)
    assert found is not None
    loaded: list[dict[str, Any]] = json.loads(found[1])
    return loaded


def drawing(page: str, label: str) -> dict[str, Any]:
    """The data of the drawing of that label in the panels, which stand after the findings."""
    labelled = [drawn["data"] for drawn in drawings(page) if drawn["data"].get("label") == label]
    data: dict[str, Any] = labelled[-1]
    return data


def training(
    steps: int = 200, layers: tuple[str, ...] = ("0.weight", "0.bias", "2.weight"), every: int = 1
) -> Run:
    """A training that goes well, with readings of every layer and a validation."""
    rng = np.random.default_rng(0)
    at = np.arange(0, steps, every)
    falling = 0.3 + 2 * np.exp(-4 * np.arange(steps) / steps) + 0.02 * rng.normal(size=steps)
    passes = np.linspace(0, steps - 1, min(steps, 10)).astype(int)

    def of_layers(signal: Signal, level: float) -> dict[str, Any]:
        noise = np.exp(0.2 * rng.normal(size=(len(layers), len(at))))
        return {name: series(level * (n + 1) * noise[n], at) for n, name in enumerate(layers)}

    shares = np.full((len(at), BINS), 1 / BINS, np.float32)
    return run_of(
        {
            LOSS: {"": falling},
            VAL_LOSS: {"cross_entropy on val": series(falling[passes] * 1.1, passes)},
            LR: {"group 0": np.full(steps, 1e-3)},
            GRAD_TOTAL_NORM: {"": 1 + 0.1 * rng.normal(size=steps)},
            GRAD_NORM: of_layers(GRAD_NORM, 0.1),
            UPDATE_RATIO: of_layers(UPDATE_RATIO, 1e-3),
            ACTIVATION_STD: of_layers(ACTIVATION_STD, 1.0),
            ACTIVATION_DEAD_FRACTION: of_layers(ACTIVATION_DEAD_FRACTION, 0.01),
            WEIGHT_HISTOGRAM: {layers[0]: series(shares, at)} if layers else {},
        }
    )
