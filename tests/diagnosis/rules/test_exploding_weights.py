import numpy as np
import pytest

from holter.diagnosis.rules.exploding_weights import exploding_weights
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import LOSS, UPDATE_RATIO, WEIGHT_NORM
from layered import STEPS, broken, by_layer, falling, flat, layered, layers, rising
from synthetic import found, said

GROWING = np.geomspace(10, 1e4, STEPS)


def run(loss: np.ndarray, norms: list, more: dict | None = None) -> Run:
    return layered(loss, {WEIGHT_NORM: by_layer(norms), **(more or {})}, layers(len(norms)))


@pytest.mark.parametrize("loss", [rising(), flat()])
def test_grown_by_orders_of_magnitude(loss: np.ndarray) -> None:
    (finding,) = found(exploding_weights, run(loss, [GROWING] * 3))
    assert finding.confidence is Confidence.LIKELY
    assert 10 < finding.onset < 30
    assert "1e+03 times" in finding.summary


def test_lost_in_the_end() -> None:
    norm = np.where(np.arange(STEPS) < 150, GROWING, np.nan)
    assert found(exploding_weights, run(broken(), [norm] * 3))


@pytest.mark.parametrize(
    ("loss", "norms"),
    [
        (flat(), [np.linspace(10, 50, STEPS)] * 3),
        (flat(), [GROWING, 10.0, 10.0]),
        (flat(), [np.r_[[0.0], GROWING[1:]], 10.0, 10.0]),
    ],
)
def test_silent(loss: np.ndarray, norms: list) -> None:
    (verdict,) = said(exploding_weights, run(loss, norms))
    assert isinstance(verdict, Clear)


def test_boundary() -> None:
    assert found(exploding_weights, run(flat(), [np.linspace(1, 31, STEPS)]))
    assert not found(exploding_weights, run(flat(), [np.linspace(1, 29, STEPS)]))


def test_too_short() -> None:
    (verdict,) = said(exploding_weights, run(flat(8), [1.0]))
    assert isinstance(verdict, NotExamined)


def test_no_damage() -> None:
    (note,) = said(exploding_weights, run(falling(), [GROWING] * 3))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"


def test_competing_losses_make_a_hint() -> None:
    competing = {LOSS: {"a": flat(), "b": 2 * flat()}}
    (finding,) = found(exploding_weights, run(flat(), [GROWING], competing))
    assert finding.confidence is Confidence.HINT
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("ratios", "advice"),
    [
        (0.001, "outside the optimizer"),  # 200 such updates make 1.2 times at most
        (0.05, "clip"),
        (np.where(np.arange(STEPS) < 5, 5.0, 0.001), "clip"),  # replaced in the first steps
    ],
)
def test_other_code_is_named_only_if_updates_do_not_account_for_it(
    ratios: object, advice: str
) -> None:
    more = {UPDATE_RATIO: by_layer([ratios] * 3)}
    (finding,) = found(exploding_weights, run(flat(), [GROWING] * 3, more))
    assert advice in finding.fix
    assert ("clip" in finding.fix) is (advice == "clip")
    assert UPDATE_RATIO in {evidence.signal for evidence in finding.evidence}
