from dataclasses import replace

import numpy as np
import pytest

from holter.diagnosis.rules.collapsed_weights import collapsed_weights
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.meta import OptimizerSummary
from holter.record.signals import GRAD_NORM, LOSS, LR, WEIGHT_DECAY, WEIGHT_NORM
from layered import STEPS, by_layer, falling, flat, layered, layers
from synthetic import found, said

SHRINKING = np.geomspace(10, 1e-3, STEPS)
DECAY = {WEIGHT_DECAY: {"group": 1.0}, LR: {"group": 0.1}}


def run(loss: np.ndarray, norms: list, more: dict | None = None) -> Run:
    return layered(loss, {WEIGHT_NORM: by_layer(norms), **(more or {})}, layers(len(norms)))


def test_shrunk_under_weight_decay() -> None:
    (finding,) = found(collapsed_weights, run(flat(), [SHRINKING] * 3, DECAY))
    assert finding.confidence is Confidence.LIKELY
    assert "weight_decay=1, lr=0.1" in finding.summary
    assert 10 < finding.onset < 30


def test_shrunk_by_something_else() -> None:
    (finding,) = found(collapsed_weights, run(flat(), [SHRINKING] * 3))
    assert "penalty" in finding.fix


def test_half_is_enough_where_decay_is_enormous() -> None:
    halved = np.r_[np.geomspace(10, 3, 20), np.full(STEPS - 20, 3)]
    assert found(collapsed_weights, run(flat(), [halved] * 3, DECAY))
    usual = {WEIGHT_DECAY: {"group": 0.01}, LR: {"group": 0.1}}
    assert not found(collapsed_weights, run(flat(), [halved] * 3, usual))


def test_weights_that_keep_nothing_need_not_shrink_by_half() -> None:
    shrunk = np.r_[np.geomspace(10, 6, 20), np.full(STEPS - 20, 6)]
    violent = {WEIGHT_DECAY: {"group": 20.0}, LR: {"group": 0.01}}
    assert found(collapsed_weights, run(flat(), [shrunk] * 3, violent))
    strong = {WEIGHT_DECAY: {"group": 5.0}, LR: {"group": 0.01}}
    assert not found(collapsed_weights, run(flat(), [shrunk] * 3, strong))


def test_a_loss_that_fell_a_little_makes_a_hint() -> None:
    (finding,) = found(collapsed_weights, run(falling(end=2.0), [SHRINKING] * 3, DECAY))
    assert finding.confidence is Confidence.HINT
    assert not found(collapsed_weights, run(falling(end=2.0), [SHRINKING] * 3))


@pytest.mark.parametrize(
    ("loss", "norms"),
    [
        (flat(), [10.0] * 3),
        (flat(), [SHRINKING, 10.0, 10.0]),
    ],
)
def test_silent(loss: np.ndarray, norms: list) -> None:
    (verdict,) = said(collapsed_weights, run(loss, norms, DECAY))
    assert isinstance(verdict, Clear)


def test_boundary_and_nan() -> None:
    norm = np.linspace(10, 0.9, STEPS)
    norm[5] = np.nan
    assert found(collapsed_weights, run(flat(), [norm] * 2))
    assert not found(collapsed_weights, run(flat(), [norm] * 2), ratio=0.05)


def test_too_short() -> None:
    for made in (run(flat(8), [1.0]), run(flat(), [0.0])):
        (verdict,) = said(collapsed_weights, made)
        assert isinstance(verdict, NotExamined)


def test_no_damage() -> None:
    (note,) = said(collapsed_weights, run(falling(), [SHRINKING] * 3, DECAY))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_competing_losses_make_a_hint() -> None:
    competing = {LOSS: {"a": flat(), "b": 2 * flat()}}
    (finding,) = found(collapsed_weights, run(flat(), [SHRINKING], competing))
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(("gradient", "count"), [(0.1, 1), (100.0, 0)])
def test_a_decay_larger_than_the_gradient_it_is_added_to_is_strong(
    gradient: float, count: int
) -> None:
    halved = np.r_[np.geomspace(10, 3, 20), np.full(STEPS - 20, 3)]
    ordinary = {WEIGHT_DECAY: {"group": 0.1}, LR: {"group": 1e-3}}
    more = {**ordinary, GRAD_NORM: by_layer([gradient] * 3)}
    recorded = layered(
        flat(),
        {WEIGHT_NORM: by_layer([halved] * 3), **more},
        replace(layers(3), optimizers=(OptimizerSummary("", "Adam", 1),)),
    )
    findings = found(collapsed_weights, recorded)
    assert len(findings) == count
    for finding in findings:
        assert "times the gradient that it is added to" in finding.summary
        assert "huge-updates" in (finding.explains or ())
