import dataclasses

import numpy as np
import pytest

from holter.diagnosis.rules.unused_rows import unused_rows
from holter.record import Run
from holter.record.findings import Clear, Finding, NotExamined, Verdict
from holter.record.meta import ParameterSummary
from holter.record.signals import GRAD_ZERO_FRACTION, LOSS
from synthetic import run_of, said


def table(name: str, shape: tuple[int, ...], zero: list[float]) -> Run:
    run = run_of({LOSS: {"": np.full(50, 1.0)}, GRAD_ZERO_FRACTION: {name: zero}})
    parameters = {name: ParameterSummary(shape, "float32")}
    return dataclasses.replace(run, meta=dataclasses.replace(run.meta, parameters=parameters))


def verdict_of(run: Run) -> Verdict:
    (verdict,) = said(unused_rows, run)
    return verdict


@pytest.mark.parametrize("shape", [(1, 8, 16), (8, 16)])
def test_one_row_has_a_gradient(shape: tuple[int, ...]) -> None:
    assert isinstance(verdict_of(table("positions", shape, [7 / 8] * 6)), Finding)


@pytest.mark.parametrize("zero", [[0.0] * 6, [0.5] * 6, [7 / 8] * 5 + [6 / 8]])
def test_several_rows_have_one(zero: list[float]) -> None:
    assert isinstance(verdict_of(table("positions", (1, 8, 16), zero)), Clear)


def test_weights_of_layers_are_no_tables() -> None:
    assert isinstance(verdict_of(table("head.weight", (8, 16), [7 / 8] * 6)), NotExamined)
