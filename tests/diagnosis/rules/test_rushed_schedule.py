import numpy as np
import pytest

from holter.diagnosis.rules.rushed_schedule import rushed_schedule
from holter.record import Event, Run
from holter.record.events import LoaderSeen, Occurrence, PassBegan, SchedulerSeen
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.meta import Meta
from holter.record.signals import DATA_BATCH_SIZE, LOSS, LR, SCHEDULE_STEPS
from synthetic import found, run_of, said, series

STEPS, EPOCHS = 400, 10
RNG = np.random.default_rng(0)
AT = np.arange(STEPS)
FALLING = 2.3 * (1 + AT / 20) ** -0.5 * (1 + 0.02 * RNG.standard_normal(STEPS))


def run_with(
    rate: np.ndarray,
    loss: np.ndarray | None = None,
    *,
    calls: np.ndarray | None = None,
    epochs: int = EPOCHS,
    **scheduler: object,
) -> Run:
    events: list[Event[Occurrence]] = [
        Event(int(step), 0.0, PassBegan("loader"))
        for step in np.linspace(0, STEPS, epochs, endpoint=False)
    ]
    events.append(Event(0, 0.0, SchedulerSeen(**{"scheduler": "", **scheduler})))
    signals = {
        LR: {"group 0": rate},
        SCHEDULE_STEPS: {"": np.ones(STEPS) if calls is None else calls},
        DATA_BATCH_SIZE: {"loader": [32] * STEPS},
    }
    if loss is not None:
        signals[LOSS] = {"": loss}
    return run_of(signals, events=events, meta=Meta(status="finished"))


def stopped(at: int) -> np.ndarray:
    """A loss that stays where it was at a step."""
    loss = FALLING.copy()
    loss[at:] = FALLING[at] * (1 + 0.02 * RNG.standard_normal(STEPS - at))
    return loss


def test_step_lr_for_epochs() -> None:
    rate = 0.1 * 0.1 ** (AT // 3)
    (finding,) = found(
        rushed_schedule, run_with(rate, stopped(6), scheduler="StepLR", step_size=3, gamma=0.1)
    )
    assert finding.confidence is Confidence.LIKELY
    assert "StepLR" in finding.summary
    assert finding.onset < 10


@pytest.mark.parametrize(("gamma", "reported"), [(0.9, True), (0.5, False)])
def test_a_factor_for_each_epoch(gamma: float, *, reported: bool) -> None:
    """Once per epoch, a factor of 0.9 leaves a rate, and one of 0.5 would not either."""
    rate = 0.1 * 0.9**AT
    run = run_with(rate, scheduler="ExponentialLR", gamma=gamma)
    assert bool(found(rushed_schedule, run)) is reported


def test_loaders_that_are_re_created_for_each_epoch() -> None:
    length = STEPS // EPOCHS
    seen = SchedulerSeen("StepLR", step_size=3)
    events: list[Event[Occurrence]] = [Event(0, 0.0, seen)]
    sizes = {}
    for epoch in range(EPOCHS):
        name, at = f"loader {epoch}", epoch * length
        events.append(Event(at, 0.0, LoaderSeen(name, batches=length)))
        events.append(Event(at, 0.0, PassBegan(name)))
        sizes[name] = series([32] * length, range(at, at + length))
    signals = {
        LR: {"group 0": 0.1 * 0.3 ** (AT // 3)},
        SCHEDULE_STEPS: {"": np.ones(STEPS)},
        DATA_BATCH_SIZE: sizes,
        LOSS: {"": FALLING},
    }
    (finding,) = found(rushed_schedule, run_of(signals, events=events))
    assert finding.confidence is Confidence.LIKELY
    assert f"of {EPOCHS} passes" in finding.summary


def test_lambda_within_the_first_epoch() -> None:
    rate = 0.1 * 0.8**AT  # under 1/1000 at step 31 of an epoch of 40
    (finding,) = found(rushed_schedule, run_with(rate, stopped(20), scheduler="LambdaLR"))
    assert finding.confidence is Confidence.LIKELY


def test_milestones_in_epochs_that_end_at_a_hundredth() -> None:
    rate = np.select([AT < 5, AT < 8], [0.1, 0.01], 0.001)
    run = run_with(rate, FALLING, scheduler="MultiStepLR", horizon=8)
    (finding,) = found(rushed_schedule, run)
    assert finding.confidence is Confidence.LIKELY
    longer = run_with(rate, FALLING, scheduler="MultiStepLR", horizon=8, epochs=1)
    assert not found(rushed_schedule, longer)


def test_without_a_loss_it_is_a_hint() -> None:
    (finding,) = found(rushed_schedule, run_with(0.1 * 0.8**AT, scheduler="LambdaLR"))
    assert finding.confidence is Confidence.HINT


def test_cosine_of_as_many_steps_as_epochs() -> None:
    rate = 0.05 * (1 + np.cos(np.pi * AT / EPOCHS))
    (finding,) = found(
        rushed_schedule,
        run_with(rate, FALLING, scheduler="CosineAnnealingLR", horizon=EPOCHS),
    )
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == EPOCHS


@pytest.mark.parametrize(
    ("rate", "scheduler"),
    [
        (0.05 * (1 + np.cos(np.pi * AT / STEPS)), "CosineAnnealingLR"),
        (0.05 * (1 + np.cos(np.pi * (AT % 40) / 40)), "CosineAnnealingWarmRestarts"),
        (0.05 * (1 + np.cos(np.pi * AT / 40)), "CyclicLR"),
        (np.minimum(1, AT / 40) * (1 - AT / STEPS), "LambdaLR"),
        (0.1 * 0.98**AT, "ExponentialLR"),  # under 1/1000 at 85 % of the run
        (np.full(STEPS, 0.1), "ConstantLR"),
    ],
)
def test_schedules_counted_in_steps(rate: np.ndarray, scheduler: str) -> None:
    (verdict,) = said(rushed_schedule, run_with(rate, FALLING, scheduler=scheduler))
    assert isinstance(verdict, Clear)


def test_stepped_per_epoch() -> None:
    calls = (AT % 40 == 39).astype(float)
    (verdict,) = said(
        rushed_schedule,
        run_with(0.1 * 0.1 ** (AT // 40), FALLING, calls=calls, scheduler="StepLR", step_size=1),
    )
    assert isinstance(verdict, Clear)


EARLY = 0.1 * 0.6**AT  # below 1/1000 at step 14, within 5 % of the run


def test_harmless_if_the_loss_is_down() -> None:
    loss = 2.3 * 0.9**AT + 0.001
    run = run_with(EARLY, loss, epochs=1, scheduler="ExponentialLR", gamma=0.6)
    (verdict,) = said(rushed_schedule, run)
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"


def test_an_early_end_whose_damage_is_unknown_is_a_hint() -> None:
    run = run_with(EARLY, epochs=1, scheduler="ExponentialLR", gamma=0.6)
    (finding,) = found(rushed_schedule, run)
    assert finding.confidence is Confidence.HINT
    (verdict,) = said(rushed_schedule, run, early=0.01)
    assert isinstance(verdict, Clear)


def test_a_rate_of_zero_without_a_decay_is_another_fault() -> None:
    rate = np.where(AT < 1, 0.1, 0.0)
    (verdict,) = said(rushed_schedule, run_with(rate, FALLING, scheduler="LambdaLR"))
    assert isinstance(verdict, Clear)


def test_no_scheduler_and_too_short() -> None:
    (verdict,) = said(rushed_schedule, run_of({LR: {"group 0": [0.1] * 50}, SCHEDULE_STEPS: {}}))
    assert isinstance(verdict, NotExamined)
    short = run_of({LR: {"group 0": [0.1] * 39}, SCHEDULE_STEPS: {"": [1] * 39}})
    (verdict,) = said(rushed_schedule, short)
    assert isinstance(verdict, NotExamined)


def test_a_rate_that_is_not_a_number() -> None:
    rate = np.full(STEPS, 0.1)
    rate[10] = np.nan
    (verdict,) = said(rushed_schedule, run_with(rate, FALLING, scheduler="LambdaLR"))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(("end", "reported"), [(1.0, False), (0.3, True), (0.04, True)])
def test_a_stage_whose_rate_is_zero_before_half_of_it(end: float, *, reported: bool) -> None:
    """The second of two stages, with an optimizer of its own."""
    begin = STEPS // 4
    stage = np.linspace(0, 1, STEPS - begin, endpoint=False)
    rate = series(0.002 * np.maximum(0, 1 - stage / end), range(begin, STEPS))
    run = run_of(
        {
            LOSS: {"A": FALLING[:begin], "B": series(FALLING[begin:], range(begin, STEPS))},
            LR: {"A group 0": [0.1] * begin, "B group 0": rate},
            SCHEDULE_STEPS: {"": series([1.0] * (STEPS - begin), range(begin, STEPS))},
        },
        events=[Event(begin, 0.0, SchedulerSeen("LambdaLR"))],
        meta=Meta(status="finished"),
    )
    findings = found(rushed_schedule, run)
    assert bool(findings) is reported
    assert all(finding.confidence is Confidence.LIKELY for finding in findings)
