import numpy as np
import pytest

from holter.diagnosis.rules.dominating_gradient import dominating_gradient
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import CLIP_COEFFICIENT, GRAD_NORM
from layered import STEPS, by_layer, falling, flat, layered, layers
from synthetic import found, said


def run(loss: np.ndarray, norms: list, more: dict | None = None) -> Run:
    return layered(loss, {GRAD_NORM: by_layer(norms), **(more or {})}, layers(len(norms)))


def test_one_layer_has_it_all() -> None:
    clipped = {CLIP_COEFFICIENT: {"": 0.01}}
    (finding,) = found(dominating_gradient, run(flat(), [1.0, 1.0, 1000.0, 1.0], clipped))
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].owner == "2.weight"
    assert "clipped" in finding.summary


@pytest.mark.parametrize(
    ("loss", "norms"),
    [
        (flat(), [1.0, 1.0, 5.0, 1.0]),
        (flat(), [0.0] * 4),
        (flat(), [1.0, 1.0, np.where(np.arange(STEPS) % 10, 1.0, 1e6), 1.0]),  # now and then
    ],
)
def test_silent(loss: np.ndarray, norms: list) -> None:
    (verdict,) = said(dominating_gradient, run(loss, norms))
    assert isinstance(verdict, Clear)


def test_boundary_and_nan() -> None:
    norms = [1.0, np.nan, 40.0, 1.0]
    assert not found(dominating_gradient, run(flat(), norms))
    assert found(dominating_gradient, run(flat(), norms), share=0.99)


def test_too_few_layers_or_steps() -> None:
    for made in (run(flat(), [1.0, 1000.0, 1.0]), run(flat(30), [1.0, 1.0, 1000.0, 1.0])):
        (verdict,) = said(dominating_gradient, made)
        assert isinstance(verdict, NotExamined)


def test_no_damage() -> None:
    (note,) = said(dominating_gradient, run(falling(), [1.0, 1.0, 1000.0, 1.0]))
    assert isinstance(note, Normal)
    assert note.exception == "no-damage"
