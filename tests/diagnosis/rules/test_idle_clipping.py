import numpy as np

from holter.diagnosis.causes import explained_by
from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.idle_clipping import idle_clipping
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import CLIP_LIMIT, CLIP_NORM, LOSS
from synthetic import found, run_of, said

STEPS = 200


def run_with(norms: np.ndarray, limit: float, loss: np.ndarray | None = None) -> Run:
    signals = {CLIP_NORM: {"": norms}, CLIP_LIMIT: {"": [limit] * len(norms)}}
    if loss is not None:
        signals[LOSS] = {"": loss}
    return run_of(signals)


def jump(height: float, loss_after: float) -> tuple[np.ndarray, np.ndarray]:
    norms, loss = np.full(STEPS, 0.5), np.full(STEPS, 1.0)
    norms[100:105] = height
    loss[101:] = loss_after
    return norms, loss


def test_a_jump_under_the_limit_that_spoils_the_loss() -> None:
    norms, loss = jump(200.0, 3.0)
    (finding,) = found(idle_clipping, run_with(norms, 1000.0, loss))
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HINT
    assert "step 100" in finding.summary
    assert "diverging-loss" in explained_by(finding.rule)


def test_a_jump_that_changes_nothing_is_a_note() -> None:
    norms, loss = jump(200.0, 1.0)
    (note,) = said(idle_clipping, run_with(norms, 1000.0, loss))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_calm_norms_with_a_rising_loss_are_no_matter_of_clipping() -> None:
    norms, loss = jump(2.0, 3.0)
    assert not found(idle_clipping, run_with(norms, 1000.0, loss))


def test_never_active_is_a_note() -> None:
    (note,) = said(idle_clipping, run_with(np.full(STEPS, 0.5), 1.0))
    assert isinstance(note, Normal)
    assert not note.exception


def test_active_once_is_clear() -> None:
    norms, loss = jump(200.0, 3.0)
    (verdict,) = said(idle_clipping, run_with(norms, 100.0, loss))
    assert isinstance(verdict, Clear)


def test_an_infinite_limit_measures() -> None:
    norms, loss = jump(200.0, 3.0)
    (verdict,) = said(idle_clipping, run_with(norms, np.inf, loss))
    assert isinstance(verdict, Clear)


def test_norms_that_are_not_finite_do_not_count() -> None:
    norms = np.full(STEPS, 0.5)
    norms[5], norms[6] = np.nan, np.inf
    assert not found(idle_clipping, run_with(norms, 1.0, np.ones(STEPS)))


def test_too_short() -> None:
    (verdict,) = said(idle_clipping, run_with(np.ones(49), 10.0))
    assert isinstance(verdict, NotExamined)
