"""The experiment that repeats a step: what it finds, and that a healthy step is equal."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from setups import KINDS
from torch import Tensor, nn

from holter import check
from holter.diagnosis.facts.repeats import repetition
from holter.lab.experiments._repeating.comparing import difference, digest
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record import Run
from holter.record.findings import Severity

_calls = count()


@torch.library.custom_op("holter_tests::restless", mutates_args=())
def restless(values: Tensor) -> Tensor:
    """Give out another first element at every second call."""
    result = values.clone()
    if next(_calls) % 2:
        result[0, 0] += 2**-12 * result[0, 0]
    return result


restless.register_autograd(lambda ctx, grad: grad)


class Restless(nn.Linear):
    def forward(self, values: Tensor) -> Tensor:
        return restless(super().forward(values))


class Drawing(nn.Linear):
    def forward(self, values: Tensor) -> Tensor:
        noise = torch.from_numpy(np.random.default_rng().normal(size=values.shape))
        return super().forward(values + 0.1 * noise.float())


class Generating(nn.Linear):
    generator = torch.Generator()

    def forward(self, values: Tensor) -> Tensor:
        return super().forward(values + 0.1 * torch.randn(values.shape, generator=self.generator))


def tried(module: nn.Module, path: Path) -> Run:
    torch.manual_seed(0)
    model = nn.Sequential(module, nn.Tanh(), nn.Linear(4, 1))
    batches = [(torch.randn(8, 4), torch.randn(8, 1))]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    setup = Setup.of(model, optimizer, nn.MSELoss(), batches)
    return run("determinism", setup, path / "run", repeats=3, steps=1)


@pytest.mark.parametrize(
    ("module", "cause", "operation"),
    [
        (Restless, "kernel", "holter_tests.restless"),
        (Drawing, "input", "to"),
        (Generating, "random", "randn"),
    ],
)
def test_the_first_operation_that_differs_is_named(
    module: type[nn.Linear], cause: str, operation: str, tmp_path: Path
) -> None:
    made = tried(module(4, 4), tmp_path)
    found = repetition(made).operation
    assert found is not None
    assert (found.cause, found.phase) == (cause, "forward")
    assert found.operation == operation
    assert found.where.startswith("tests/lab/experiments/test_determinism.py:")
    assert (found.elements, found.ulps > 1) == ((1, True) if cause == "kernel" else (0, False))
    (finding,) = check(made, select=["nondeterministic-step"]).findings
    assert finding.severity is (Severity.INFO if cause == "kernel" else Severity.WARNING)
    assert found.operation in finding.summary


@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_every_kind_are_equal_bit_for_bit(kind: str, tmp_path: Path) -> None:
    made = run("determinism", KINDS[kind](), tmp_path / "run", repeats=2, steps=1)
    assert not repetition(made).differing
    checkup = check(made, select=["nondeterministic-step"])
    assert not checkup.findings
    assert [clear.rule for clear in checkup.clear] == ["nondeterministic-step"]


def test_the_price_of_determinism_is_measured(tmp_path: Path) -> None:
    repeated = repetition(tried(nn.Linear(4, 4), tmp_path))
    assert repeated.seconds is not None
    assert min(repeated.seconds) > 0
    assert "instead of" in repeated.price


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_neighbours_are_one_ulp_apart_across_zero_too(dtype: torch.dtype) -> None:
    tiny = torch.tensor([0.0, 1.0, -1.0, torch.nan], dtype=dtype)
    away = torch.tensor([torch.inf] * 4, dtype=dtype)
    if dtype in (torch.float64, torch.float32):
        following = torch.nextafter(tiny, away)
        assert difference(tiny, following).elements == 3
        assert difference(tiny, following).ulps == 1
    assert not difference(tiny, tiny.clone())
    lowest = torch.tensor([-torch.finfo(dtype).smallest_normal], dtype=dtype)
    assert difference(lowest, -lowest).ulps > 1


def test_a_digest_sees_one_bit_and_the_order() -> None:
    values = torch.arange(5000.0)
    changed = values.clone()
    changed[4321] = torch.nextafter(changed[4321], torch.tensor(torch.inf))
    assert digest(values) == digest(values.clone())
    assert digest(values) != digest(changed)
    assert digest(values) != digest(values.flip(0))
