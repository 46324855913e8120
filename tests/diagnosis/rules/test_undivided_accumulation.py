import numpy as np
import pytest

from holter.diagnosis.rules.undivided_accumulation import undivided_accumulation
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.meta import Meta, OptimizerSummary
from holter.record.signals import BACKWARD_CALLS, DATA_BATCHES, LOSS, LOSS_ROOT_SHARE, LOSS_SUMMED
from synthetic import found, run_of, said

STEPS = 30


def run_with(
    batches: float = 4,
    calls: float = 4,
    share: float = 1.0,
    *,
    optimizer: str = "SGD",
    summed: bool = False,
    losses: tuple[str, ...] = ("",),
    steps: int = STEPS,
) -> Run:
    signals = {
        DATA_BATCHES: {"loader": [batches] * steps},
        BACKWARD_CALLS: {"": [calls] * steps},
        LOSS_ROOT_SHARE: {"": [share] * steps},
        LOSS_SUMMED: {"mse_loss": [float(summed)] * steps},
        LOSS: {owner: [1.0] * steps for owner in losses},
    }
    return run_of(signals, meta=Meta(optimizers=(OptimizerSummary("", optimizer),)))


def test_with_sgd() -> None:
    (finding,) = found(undivided_accumulation, run_with())
    assert finding.confidence is Confidence.LIKELY
    assert "4 times" in finding.summary


def test_with_adam_it_is_a_hint() -> None:
    (finding,) = found(undivided_accumulation, run_with(optimizer="AdamW"))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    "run",
    [
        run_with(share=0.25),  # divided
        run_with(share=1.02),  # something was added to the loss
        run_with(batches=1, calls=1),
        run_with(batches=1, calls=2),  # two losses of one batch
        run_with(share=np.nan),
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(undivided_accumulation, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize("run", [run_with(losses=("a", "b")), run_with(steps=9)])
def test_not_examined(run: Run) -> None:
    (verdict,) = said(undivided_accumulation, run)
    assert isinstance(verdict, NotExamined)
