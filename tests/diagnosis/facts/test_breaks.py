"""Breaks: whether loss and gradients were in their band until a value was not finite."""

import math

import pytest

from holter.diagnosis.facts.breaks import breaks_suddenly
from holter.record import Event
from holter.record.events import CaptureWritten
from holter.record.signals import GRAD_TOTAL_NORM, LOSS
from synthetic import run_of

LEVEL = [1.0 + 0.05 * math.sin(step) for step in range(80)]


@pytest.mark.parametrize(
    ("losses", "norms", "alarm", "sudden"),
    [
        (LEVEL, LEVEL, "nonfinite", True),
        ([*LEVEL[:40], *(4.0 + each for each in LEVEL[:40])], LEVEL, "nonfinite", True),
        ([*LEVEL[:70], *(3.0**each for each in range(1, 11))], LEVEL, "nonfinite", False),
        (LEVEL, [*LEVEL[:70], *(3.0**each for each in range(1, 11))], "nonfinite", False),
        (LEVEL[-20:], LEVEL[-20:], "nonfinite", False),
        (LEVEL, LEVEL, "spike", False),
    ],
    ids=["level", "another level", "loss grows", "gradients grow", "too short", "spike"],
)
def test_a_break_is_sudden_after_a_level_course(
    losses: list[float], norms: list[float], alarm: str, sudden: bool
) -> None:
    end = len(losses)
    run = run_of(
        {LOSS: {"": [*losses, math.nan]}, GRAD_TOTAL_NORM: {"": [*norms, math.nan]}},
        events=[Event(end, 0.0, CaptureWritten(alarm, end, f"step-{end:08d}-{alarm}"))],
    )
    assert breaks_suddenly(run) is sudden
