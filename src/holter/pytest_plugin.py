"""The pytest plugin: fixtures that test a training. It imports nothing before they are used."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holter.diagnosis.engine import Checkup


@pytest.fixture
def holter_overfit_batch(tmp_path: Path) -> "Callable[..., Checkup]":
    """Assert that a setup can memorise a few samples: `holter_overfit_batch(setup, steps=200)`."""
    from holter.testing.asserting import assert_overfits_batch

    return partial(assert_overfits_batch, folder=tmp_path / "holter-overfit-batch")


@pytest.fixture
def holter_trains(tmp_path: Path) -> "Callable[..., Checkup]":
    """Assert that a setup trains without a finding: `holter_trains(setup, steps=100)`."""
    from holter.testing.asserting import assert_trains

    return partial(assert_trains, folder=tmp_path / "holter-trains")
