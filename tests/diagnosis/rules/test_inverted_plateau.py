import pytest

from holter.diagnosis.rules.inverted_plateau import inverted_plateau
from holter.record import Event
from holter.record.events import FigurePrinted, RateCut
from holter.record.findings import Clear, Finding, Verdict
from holter.record.signals import LR, SCHEDULE_STEPS
from synthetic import run_of, said

FALLING = ((0.6612, 0.5234, 0.4889), (0.4412, 0.4343))  # a loss computed by hand, to each cut
RISING = ((0.3312, 0.4234, 0.4712), (0.5212, 0.5443))


@pytest.mark.parametrize(
    ("mode", "given", "figure", "kind"),
    [
        ("max", FALLING, ("val mse", (0.661, 0.434)), Finding),
        ("max", FALLING, ("val mse", (0.661, 0.391)), Clear),  # another loss
        ("max", FALLING, ("val mse", (0.0, 0.0)), Clear),
        ("max", FALLING, ("score", (0.661, 0.434)), Clear),  # which may be a good one
        ("max", FALLING, ("val accuracy", (0.661, 0.434)), Clear),  # that really falls
        ("min", FALLING, ("val mse", (0.661, 0.434)), Clear),
        ("min", RISING, ("val accuracy", (0.331, 0.544)), Finding),
        ("min", RISING, ("val loss", (0.331, 0.544)), Clear),
    ],
)
def test_a_metric_that_the_script_prints(
    mode: str,
    given: tuple[tuple[float, ...], ...],
    figure: tuple[str, tuple[float, float]],
    kind: type[Verdict],
) -> None:
    name, values = figure
    events = [
        Event(50, 0.0, RateCut(mode, given[0][-1], 1e-2, 1e-3, given[0])),
        Event(90, 0.0, RateCut(mode, given[1][-1], 1e-3, 1e-4, given[1])),
        Event(99, 0.0, FigurePrinted(name, (10, 90), values)),
    ]
    readings = {LR: {"": [1e-3] * 100}, SCHEDULE_STEPS: {"": [1.0] * 100}}
    (verdict,) = said(inverted_plateau, run_of(readings, events=events))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert f"`{name}`" in verdict.summary
