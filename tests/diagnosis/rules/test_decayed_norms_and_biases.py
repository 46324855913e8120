import numpy as np
import pytest

from holter.diagnosis.rules.decayed_norms_and_biases import decayed_norms_and_biases
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.meta import Meta, ParameterSummary
from holter.record.signals import LR, WEIGHT_DECAY, WEIGHT_NORM
from synthetic import found, run_of, said

STEPS = 400
SHRINKING = 7 * np.exp(-4 * np.arange(STEPS) / STEPS)
WEIGHT = {"0.weight": ParameterSummary((48, 48), "float32")}
META = Meta(parameters={"norm.weight": ParameterSummary((48,), "float32"), **WEIGHT})


def given(
    norms: np.ndarray,
    *,
    decays: tuple[float, ...] = (1.0,),
    rate: float = 1e-2,
    meta: Meta | None = None,
) -> Run:
    groups = {f"group {place}": decay for place, decay in enumerate(decays)}
    return run_of(
        {
            WEIGHT_NORM: {"norm.weight": norms, "0.weight": np.ones(len(norms))},
            WEIGHT_DECAY: {name: [decay] * len(norms) for name, decay in groups.items()},
            LR: {name: [rate] * len(norms) for name in groups},
        },
        meta=META if meta is None else meta,
    )


def test_gains_shrink_as_the_decay_pulls() -> None:
    (finding,) = found(decayed_norms_and_biases, given(SHRINKING))
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].owner == "norm.weight"
    assert "2.2 %" in finding.summary


@pytest.mark.parametrize(
    "run",
    [
        given(np.full(STEPS, 7.0)),
        given(SHRINKING, decays=(0.0,)),
        given(SHRINKING, decays=(0.01,)),  # shrunk for another reason
        given(np.linspace(7, 3.6, STEPS)),  # a little over half is left
        given(SHRINKING, meta=Meta(parameters=WEIGHT)),
    ],
)
def test_silent(run: Run) -> None:
    (verdict,) = said(decayed_norms_and_biases, run)
    assert isinstance(verdict, Clear)


def test_a_little_under_half_is_left() -> None:
    run = given(np.linspace(7, 3.2, STEPS))
    assert found(decayed_norms_and_biases, run)
    assert not found(decayed_norms_and_biases, run, shrunk=0.4)


def test_decay_has_to_explain_a_part() -> None:
    weak = given(SHRINKING, decays=(0.2,))
    assert not found(decayed_norms_and_biases, weak)
    assert found(decayed_norms_and_biases, weak, min_part=0.1)


def test_gains_are_taken_to_be_in_the_group_without_decay() -> None:
    (verdict,) = said(decayed_norms_and_biases, given(SHRINKING, decays=(1.0, 0.0)))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "group-without-decay"
    assert found(decayed_norms_and_biases, given(SHRINKING, decays=(1.0, 0.5)))


@pytest.mark.parametrize(
    "norms",
    [
        SHRINKING[:9],
        np.linspace(0, 1, STEPS),  # gains of a residual branch begin at zero
        np.full(STEPS, np.nan),
    ],
)
def test_not_examined(norms: np.ndarray) -> None:
    (verdict,) = said(decayed_norms_and_biases, given(norms))
    assert isinstance(verdict, NotExamined)
