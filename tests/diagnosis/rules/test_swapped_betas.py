"""swapped-betas: a momentum that outlives the second moment that it is divided by."""

from collections.abc import Sequence

import numpy as np
import pytest

from holter.diagnosis.rules.swapped_betas import swapped_betas
from holter.record import Event, Run
from holter.record.events import OptimizerSeen
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import BETA1, BETA2, LOSS
from layered import falling, rising
from synthetic import found, run_of, said, series

STEPS = 40


def given(
    beta1: float | Sequence[float] | np.ndarray,
    beta2: float | Sequence[float] | np.ndarray,
    *,
    kind: str = "AdamW",
    loss: np.ndarray | None = None,
) -> Run:
    return run_of(
        {
            LOSS: {"": rising(STEPS) if loss is None else loss},
            BETA1: {"group 0": np.broadcast_to(beta1, STEPS)},
            BETA2: {"group 0": np.broadcast_to(beta2, STEPS)},
        },
        events=[Event(0, 0.0, OptimizerSeen("", kind))] if kind else (),
    )


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "NAdam", "Adamax", "FusedAdam", ""])
def test_swapped(kind: str) -> None:
    (finding,) = said(swapped_betas, given(0.999, 0.9, kind=kind))
    assert finding.summary.startswith("betas=(0.999, 0.9): beta1 is larger than beta2")
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 0
    assert finding.preview
    assert [evidence.signal for evidence in finding.evidence] == [BETA1, BETA2]


def test_it_is_a_hint_where_the_run_learned() -> None:
    (finding,) = said(swapped_betas, given(0.999, 0.9, loss=falling(STEPS)))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    ("beta1", "beta2"),
    [
        (0.9, 0.999),
        (0.9, 0.95),
        (0.9, 0.9),
        (0.95, 0.92),  # larger than beta2, but not than its root
        (np.linspace(0.95, 0.85, STEPS), 0.999),  # OneCycleLR
        (0.9, 1 - np.arange(2.0, STEPS + 2) ** -0.8),  # beta2 rises from 0.43
    ],
)
def test_clear(beta1: float | np.ndarray, beta2: float | np.ndarray) -> None:
    (verdict,) = said(swapped_betas, given(beta1, beta2))
    assert isinstance(verdict, Clear)


def test_the_clear_one_names_the_bound() -> None:
    (verdict,) = said(swapped_betas, given(0.9, 0.999))
    assert isinstance(verdict, Clear)
    assert verdict.because == "betas=(0.9, 0.999): beta1 is below the square root of beta2, 0.9995"


@pytest.mark.parametrize(
    "run",
    [
        given(0.0, 0.9),
        given(0.9, 0.0),
        given(np.nan, 0.9),
        given(0.98, 0.92, kind="Adan"),  # its second beta is of differences
        given(0.99, 0.9, kind="Lion"),  # it takes the sign
    ],
)
def test_not_examined(run: Run) -> None:
    (verdict,) = said(swapped_betas, run)
    assert isinstance(verdict, NotExamined)


def test_a_part_of_the_run() -> None:
    run = given([0.9] * 30 + [0.99] * 10, 0.95)
    assert not found(swapped_betas, run)
    (finding,) = found(swapped_betas, run, min_share=0.25)
    assert finding.onset == 30
    assert "betas=(0.99, 0.95)" in finding.summary


def test_one_finding_for_the_groups_of_an_optimizer() -> None:
    owners = ("Generator group 0", "Generator group 1", "Critic group 0")
    run = run_of(
        {
            BETA1: dict(zip(owners, ([0.99] * 9, [0.99] * 9, [0.5] * 9), strict=True)),
            BETA2: dict.fromkeys(owners, [0.9] * 9),
        }
    )
    (finding,) = said(swapped_betas, run)
    assert "of Generator in 2 parameter groups" in finding.summary


def test_steps_that_have_both_are_compared() -> None:
    run = run_of(
        {
            BETA1: {"group 0": series([0.999] * 3, [0, 4, 8]), "group 1": [0.9]},
            BETA2: {"group 0": series([0.9] * 3, [4, 8, 12])},
        }
    )
    (finding,) = found(swapped_betas, run)
    assert finding.onset == 4
