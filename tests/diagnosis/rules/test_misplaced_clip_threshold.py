import numpy as np

from holter.diagnosis.causes import explained_by
from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.misplaced_clip_threshold import misplaced_clip_threshold
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_LOSS, CLIP_THRESHOLD_NORM
from synthetic import found, run_of, said

RANDOM = np.random.default_rng(0)
NORMS = np.exp(0.3 * RANDOM.standard_normal(200))
FLAT = 1.0 + 0.02 * RANDOM.standard_normal(200)
FALLING = np.geomspace(1.0, 0.2, 200) + 0.02 * RANDOM.standard_normal(200)


def run_with(
    limit: float | None,
    *,
    norms: np.ndarray = NORMS,
    present: np.ndarray = FLAT,
    advised: np.ndarray | None = FALLING,
    trial: str = "",
) -> Run:
    losses = {"as set": present} | ({} if advised is None else {"advised": advised})
    signals = {CLIP_THRESHOLD_NORM: {trial: norms}, CLIP_THRESHOLD_LOSS: losses}
    if limit is not None:
        signals[CLIP_THRESHOLD_LIMIT] = {trial: [limit]}
    return run_of(signals)


def test_a_limit_that_holds_the_training_back() -> None:
    (finding,) = found(misplaced_clip_threshold, run_with(0.002))
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.LIKELY
    assert "constant-clipping" in explained_by(finding.rule)
    assert f"{np.percentile(NORMS, 95):.2g}" in finding.fix


def test_always_clipped_without_damage_is_harmless() -> None:
    for loss in (FALLING, FLAT):
        (note,) = said(misplaced_clip_threshold, run_with(0.002, present=loss, advised=loss))
        assert isinstance(note, Normal)
        assert note.exception == NO_DAMAGE


def test_losses_that_cannot_be_compared_are_not_examined() -> None:
    for advised in (None, np.append(FALLING[:-1], np.nan)):
        (verdict,) = said(misplaced_clip_threshold, run_with(0.002, advised=advised))
        assert isinstance(verdict, NotExamined)


def test_a_low_limit_that_leaves_a_tenth_is_only_noted() -> None:
    assert not found(misplaced_clip_threshold, run_with(0.1))


def test_nothing_clipped_gives_the_percentile() -> None:
    (verdict,) = said(misplaced_clip_threshold, run_with(None))
    assert isinstance(verdict, Clear)
    assert f"95th percentile {np.percentile(NORMS, 95):.3g}" in verdict.because


def test_a_limit_among_the_norms_is_clear() -> None:
    (verdict,) = said(misplaced_clip_threshold, run_with(float(np.percentile(NORMS, 95))))
    assert isinstance(verdict, Clear)
    assert "clips 5 %" in verdict.because


def test_a_limit_far_above_is_a_note() -> None:
    note, clear = said(misplaced_clip_threshold, run_with(1e3))
    assert isinstance(note, Normal)
    assert isinstance(clear, Clear)


def test_norms_that_are_not_finite_do_not_count() -> None:
    norms = NORMS.copy()
    norms[3], norms[4] = np.nan, np.inf
    (verdict,) = said(misplaced_clip_threshold, run_with(2.0, norms=norms))
    assert isinstance(verdict, Clear)
    (verdict,) = said(misplaced_clip_threshold, run_with(2.0, norms=norms[:20]))
    assert isinstance(verdict, NotExamined)


def test_gradients_of_zero_are_not_examined() -> None:
    (verdict,) = said(misplaced_clip_threshold, run_with(2.0, norms=np.zeros(100)))
    assert isinstance(verdict, NotExamined)
