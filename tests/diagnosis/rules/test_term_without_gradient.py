import numpy as np
import pytest

from holter.diagnosis.rules.term_without_gradient import term_without_gradient
from holter.record.findings import Clear, NotExamined, Verdict
from holter.record.signals import LOSS, LOSS_CONSTANT_PART
from synthetic import found, run_of, said

NOISE = 1 + 0.1 * np.random.default_rng(0).standard_normal(200)


def test_a_part_that_is_computed_and_stays() -> None:
    signals = {
        LOSS: {"": 4 * NOISE + np.geomspace(2, 1e-3, 200)},
        LOSS_CONSTANT_PART: {"": 4 * NOISE},
    }
    (finding,) = found(term_without_gradient, run_of(signals))
    assert "100 %" in finding.summary
    assert finding.preview


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (0 * NOISE, Clear),
        (np.full(200, 4.0), Clear),  # a fixed number
        (0.5 * NOISE, Clear),  # a small part
        (-4 * NOISE, Clear),  # the entropy of soft targets
        (40 * NOISE, Clear),  # no part of the loss
        (4 * NOISE[:5], NotExamined),
    ],
)
def test_silent(part: np.ndarray, kind: type[Verdict]) -> None:
    signals = {LOSS: {"": np.geomspace(8, 5, 200)}, LOSS_CONSTANT_PART: {"": part}}
    (verdict,) = said(term_without_gradient, run_of(signals))
    assert isinstance(verdict, kind)
