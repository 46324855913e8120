import numpy as np
import pytest

from holter.diagnosis.rules.decayed_learning_rate import decayed_learning_rate
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import ACCURACY, LOSS, LR, UPDATE_RATIO
from synthetic import found, run_of, said, series

STEPS = 600
AT = np.arange(STEPS)
RNG = np.random.default_rng(0)
NOISE = 1 + 0.02 * RNG.standard_normal(STEPS)
POWER = 2.3 * (1 + AT / 20) ** -0.5
FALLING = POWER * NOISE
RATE = 0.1 * 0.97**AT  # a tenth at step 76, 3/1000 at 191


def stopped(at: int) -> np.ndarray:
    return POWER[np.minimum(AT, at)] * NOISE


def run_with(
    rate: np.ndarray = RATE,
    loss: np.ndarray | None = None,
    update: float | None = 1e-6,
    accuracy: float | None = None,
) -> Run:
    signals = {LR: {"group 0": rate}, LOSS: {"": stopped(76) if loss is None else loss}}
    if update is not None:
        signals[UPDATE_RATIO] = {"weight": [update] * STEPS}
    if accuracy is not None:
        signals[ACCURACY] = {"cross_entropy": [accuracy] * STEPS}
    return run_of(signals)


def test_the_rate_went_and_the_loss_stopped() -> None:
    (finding,) = found(decayed_learning_rate, run_with())
    assert finding.confidence is Confidence.LIKELY
    assert 70 <= finding.onset <= 80


def test_without_updates_it_is_a_hint() -> None:
    (finding,) = found(decayed_learning_rate, run_with(update=None))
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize(
    "run",
    [
        run_with(loss=FALLING),  # still falls
        run_with(loss=(0.5 + 2 * 0.9**AT) * NOISE),  # had settled before
        run_with(loss=(1e-3 + 2 * 0.95**AT) * NOISE),  # is near 0
        run_with(accuracy=0.99),  # little is left to learn
    ],
)
def test_harmless(run: Run) -> None:
    (verdict,) = said(decayed_learning_rate, run)
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"


def test_a_rate_of_exactly_zero_counts() -> None:
    (finding,) = found(decayed_learning_rate, run_with(rate=np.maximum(0, 0.1 * (1 - AT / 100))))
    assert finding.confidence is Confidence.LIKELY


def test_weights_that_still_move_make_it_a_hint() -> None:
    (finding,) = found(decayed_learning_rate, run_with(update=1e-2))
    assert finding.confidence is Confidence.HINT
    (finding,) = found(decayed_learning_rate, run_with(update=1e-2), tiny_update=0.1)
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "run",
    [
        run_with(rate=0.1 * (1 - AT / STEPS)),  # ends at 0 on the last steps
        run_with(rate=0.05 * (1 + np.cos(np.pi * AT / STEPS))),
        run_with(rate=0.1 * 0.1 ** (AT // 200)),
    ],
)
def test_clear(run: Run) -> None:
    (verdict,) = said(decayed_learning_rate, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "run",
    [
        run_of({LR: {"group 0": RATE[:59]}, LOSS: {"": stopped(76)[:59]}}),
        run_with(loss=np.where(AT % 2, -1.0, 1.0)),
        run_of({LR: {"group 0": RATE}, LOSS: {"": series(stopped(76)[::100], AT[::100])}}),
        run_with(loss=np.full(STEPS, np.nan)),
    ],
)
def test_not_examined(run: Run) -> None:
    (verdict,) = said(decayed_learning_rate, run)
    assert isinstance(verdict, NotExamined)


def test_several_optimizers_are_not_examined() -> None:
    run = run_of(
        {LR: {"a group 0": RATE, "b group 0": RATE}, LOSS: {"a": stopped(76), "b": stopped(76)}}
    )
    (verdict,) = said(decayed_learning_rate, run)
    assert isinstance(verdict, NotExamined)


def test_a_group_that_keeps_its_rate_is_enough() -> None:
    run = run_of({LR: {"group 0": RATE, "group 1": np.full(STEPS, 0.01)}, LOSS: {"": stopped(76)}})
    (verdict,) = said(decayed_learning_rate, run)
    assert isinstance(verdict, Clear)


def test_losses_with_a_nan() -> None:
    loss = stopped(76)
    loss[300] = np.nan
    assert found(decayed_learning_rate, run_with(loss=loss))


def test_losses_read_every_fourth_step() -> None:
    thin = series(stopped(150)[::4], AT[::4])
    rate = 0.1 * 0.985**AT
    run = run_of(
        {LR: {"group 0": rate}, LOSS: {"": thin}, UPDATE_RATIO: {"weight": [1e-6] * STEPS}}
    )
    assert found(decayed_learning_rate, run)


def test_a_vanished_rate_with_a_loss_near_its_start_is_a_hint() -> None:
    rate = 0.1 * 0.1 ** (AT // 30)
    (finding,) = found(decayed_learning_rate, run_with(rate=rate, loss=(1.5 + 0.7**AT) * NOISE))
    assert finding.confidence is Confidence.HINT
    assert not found(decayed_learning_rate, run_with(rate=rate, loss=(0.5 + 2 * 0.7**AT) * NOISE))
