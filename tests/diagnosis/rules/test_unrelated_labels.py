import numpy as np
import pytest

from holter.diagnosis.rules.unrelated_labels import unrelated_labels
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import LABEL_FIT, LABEL_HELD_OUT, LABEL_SAMPLES
from synthetic import found, run_of, said

RNG = np.random.default_rng(0)
ONE = np.linspace(2.3, 0.1, 60)  # a batch learned by heart


def learned(
    gain: float = 0.0, *, fit_gain: float = 0.0, one: np.ndarray | None = ONE, samples: int = 512
) -> Run:
    """Readings that alternate around their mean, and differ by exactly so much."""
    steps, batches = 0.1 * np.resize([1, -1], 240), 0.1 * np.resize([1, -1], 16)
    noise = 0.05 * np.resize([1, 1, -1, -1], 240)
    fit = {"true": 2.0 + steps - fit_gain} | {f"shuffled {i}": 2.0 + steps + noise for i in (1, 2)}
    held = {"true": 2.1 + batches - gain}
    held |= {f"shuffled {i}": 2.1 + batches + noise[:16] for i in (1, 2)}
    if one is not None:
        fit["one batch"] = one
    return run_of({LABEL_FIT: fit, LABEL_HELD_OUT: held, LABEL_SAMPLES: {"": [samples]}})


@pytest.mark.parametrize(("gain", "fit_gain"), [(0.5, 0.5), (0.1, 0.0), (0.0, 0.1)])
def test_silent_where_true_labels_help(gain: float, fit_gain: float) -> None:
    (verdict,) = said(unrelated_labels, learned(gain, fit_gain=fit_gain))
    assert isinstance(verdict, Clear)


def test_no_difference_is_a_hint() -> None:
    (finding,) = found(unrelated_labels, learned())
    assert finding.confidence is Confidence.HINT
    assert [each.owner for each in finding.evidence] == ["true", "shuffled 1", "shuffled 2"]


def test_labels_that_are_a_little_harder_than_shuffled_ones_are_found() -> None:
    assert found(unrelated_labels, learned(-0.03))


@pytest.mark.parametrize("gain", [0.03, -0.5])
def test_a_small_gain_and_a_large_loss_are_too_little_to_tell(gain: float) -> None:
    (verdict,) = said(unrelated_labels, learned(gain))
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize("one", [None, np.full(60, 2.3), np.linspace(2.3, 2.0, 60)])
def test_a_model_that_learns_nothing_tells_nothing(one: np.ndarray | None) -> None:
    (verdict,) = said(unrelated_labels, learned(one=one))
    assert isinstance(verdict, NotExamined)


def test_few_samples_and_nan_tell_nothing() -> None:
    for run in (learned(samples=64), learned(np.nan)):
        (verdict,) = said(unrelated_labels, run)
        assert isinstance(verdict, NotExamined)
