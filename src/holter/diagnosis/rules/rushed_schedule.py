"""A schedule configured in epochs is stepped for every batch."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import Halt, halted
from holter.diagnosis.facts.schedule import GONE, WEAK, Pace, Rate, Scheduler
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent, portion, unmet
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, SCHEDULE_STEPS

_WHOLE = 0.8  # share of the steps of a run that are no stage of it


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LR, SCHEDULE_STEPS),
)
def rushed_schedule(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 40,
    gone: Annotated[float, "share of its peak below which the rate has vanished"] = 1e-3,
    min_share: Annotated[float, "final share of the run with a vanished rate"] = 0.5,
    early: Annotated[float, "share of the run in which no schedule should end"] = 0.05,
    as_epochs: Annotated[float, "longest schedule in epochs, over the number of epochs"] = 1.5,
    min_troughs: Annotated[int, "rises after a fall for a repeated cosine"] = 3,
) -> Iterator[Verdict]:
    """A schedule configured in epochs is stepped for every batch.

    ## What it does
    Looks at runs whose schedulers are stepped at least once per optimizer step. It reports a
    learning rate that has vanished for most of the run (exactly 0, or gone after the first epoch or
    through a schedule configured in epochs: its `step_size` or `T_max`, or a `gamma` that would
    give usable rates per epoch), and a cosine without restarts that rises repeatedly. It is likely
    if the loss stopped falling with the rate, or the rate is 0.

    ## Why it matters
    A schedule for many epochs ends after a few batches. The rest of the run trains at a learning
    rate near 0 (or one that oscillates), and looks converged.

    ## Example
    ```python
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)                # bad
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(loader))  # good
    ```

    ## What to do
    Move `scheduler.step()` out of the loop over batches, or set its length in steps: epochs times
    batches. With several processes, check that the scheduler is stepped only once per update.

    ## When it is wrong
    A short schedule followed by a long phase at a tiny rate, or a cosine used as a cyclic schedule,
    may be intended.

    ## How to confirm
    - Print the learning rate at the end of each epoch.
    - Repeat two epochs with `scheduler.step()` once per epoch and compare the losses.
    """
    pace = facts.scheduler_pace
    if pace is None or not facts.rates or facts.run.steps < min_steps:
        yield rushed_schedule.not_examined(
            unmet(
                (pace is not None, "no scheduler was stepped"),
                (bool(facts.rates), "the learning rate was not read"),
                (
                    facts.run.steps >= min_steps,
                    f"{facts.run.steps} of the {min_steps} steps needed",
                ),
            )
        )
        return
    if not pace.is_per_step:
        yield rushed_schedule.clear(
            f"schedulers are stepped {pace.per_step:.2g} times per step, about"
            f" {pace.calls:.0f} times in all"
        )
        return
    counted = {
        scheduler for scheduler in facts.schedulers if _counts_epochs(facts, scheduler, as_epochs)
    }
    for rate in facts.rates:
        end = float(rate.relative[-1])
        step = rate.first_below(1.01 * max(gone, end if counted and end <= WEAK else 0))
        share = 1 - rate.share_before(step)
        cosine = _swinging_cosine(facts, rate, min_troughs)
        if step <= rate.steps[0] + 1 and rate.is_zero_from(step):
            yield rushed_schedule.clear(
                f"the learning rate{of(rate.optimizer)} is 0 from step {step}, without a decay"
            )
        elif share >= min_share:
            yield _ended(facts, rate, step, pace, early, counted=bool(counted))
        elif cosine is not None:
            yield _swinging(facts, rate, cosine, pace, counted=cosine in counted)
        else:
            yield rushed_schedule.clear(
                f"the learning rate{of(rate.optimizer)} is below {percent(gone)} of its peak on"
                f" {portion(share)} of the steps"
                + (f", and rises again {len(rate.troughs)} times" if len(rate.troughs) else "")
            )


def _ended(
    facts: Facts, rate: Rate, step: int, pace: Pace, early: float, *, counted: bool
) -> Verdict:
    """Judge a rate that is gone from `step` on, for most of the run."""
    steps, done = facts.run.steps, rate.share_before(step)
    is_stage = rate.steps[-1] - rate.steps[0] < _WHOLE * (steps - 1)
    epochs = None if is_stage else facts.epochs
    in_first_epoch = epochs is not None and epochs.count > 1 and step <= epochs.length
    is_zero = rate.is_zero_from(step)
    ended = f"the learning rate{of(rate.optimizer)} has vanished at step {step} of {steps}"
    if not (counted or in_first_epoch or is_zero or done <= early):
        return rushed_schedule.clear(f"{ended}, after {percent(done)} of the run")
    halt = _halt(facts, rate)
    if (
        halt is None
        and not (counted or in_first_epoch or is_zero)
        and facts.falling_loss is not None
    ):
        return rushed_schedule.harmless(
            f"{ended}; the loss was already low by then, or is still falling"
        )
    progress = (
        f", after {percent(done)} of its steps"
        if epochs is None
        else f", after {step / epochs.length:.2g} of {epochs.count} {epochs.kind}"
    )
    evidence = [
        Evidence(LR, (0, steps - 1), f"at most {rate.at(step):.2g} from step {step}", rate.group),
        Evidence(SCHEDULE_STEPS, (0, steps - 1), f"{pace.per_step:.2g} calls per step"),
    ]
    if halt is not None:
        evidence.append(Evidence(LOSS, (0, steps - 1), str(halt)))
    sure = halt is not None or is_zero or (counted and in_first_epoch)
    return rushed_schedule.finding(
        f"the learning rate{of(rate.optimizer)} falls from {rate.peak:.3g} to {rate.at(step):.2g}"
        f" by step {step}{progress}: {_subject(facts)} stepped {pace.per_step:.2g} times per step",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        onset=step // 2,
        evidence=evidence,
        fix="call `scheduler.step()` once per epoch, or set the length of the schedule in steps:"
        " epochs times batches",
    )


def _counts_epochs(facts: Facts, scheduler: Scheduler, as_epochs: float) -> bool:
    """Whether the settings of a scheduler make sense in epochs.

    They are no larger than the number of epochs, or a factor for each call would leave a rate.
    """
    epochs = facts.epochs
    if epochs is None or epochs.count < 2:
        return False
    lengths = [calls for calls in (scheduler.step_size, scheduler.horizon) if calls is not None]
    if not lengths and scheduler.gamma is not None and 0 < scheduler.gamma < 1:
        return bool(scheduler.gamma**epochs.count >= GONE)
    return any(calls <= as_epochs * epochs.count for calls in lengths)


def _halt(facts: Facts, rate: Rate) -> Halt | None:
    loss = facts.falling_loss
    if loss is None:
        return None
    return halted(facts, loss, rate.first_below(WEAK), rate.first_below(GONE))


def _swinging_cosine(facts: Facts, rate: Rate, min_troughs: int) -> Scheduler | None:
    """Return the cosine scheduler without restarts whose rate rises again and again, or None."""
    if len(rate.troughs) < min_troughs:
        return None
    return next(
        (scheduler for scheduler in facts.schedulers if scheduler.name == "CosineAnnealingLR"), None
    )


def _swinging(facts: Facts, rate: Rate, cosine: Scheduler, pace: Pace, *, counted: bool) -> Verdict:
    span, epochs = (int(rate.steps[0]), int(rate.steps[-1])), facts.epochs
    against = "" if epochs is None else f"; the run has {epochs.count} {epochs.kind}"
    return rushed_schedule.finding(
        f"the learning rate{of(rate.optimizer)} rises again {len(rate.troughs)} times: {cosine} is"
        f" stepped {pace.per_step:.2g} times per step{against}",
        confidence=Confidence.LIKELY if counted else Confidence.HINT,
        onset=int(rate.troughs[0]),
        evidence=(
            Evidence(LR, span, f"{len(rate.troughs)} troughs", rate.group),
            Evidence(SCHEDULE_STEPS, span, f"{pace.per_step:.2g} calls per step"),
        ),
        fix="call `scheduler.step()` once per epoch, or set `T_max` to the number of steps",
    )


def _subject(facts: Facts) -> str:
    names = [str(scheduler) for scheduler in facts.schedulers]
    return f"{names[0]} is" if len(names) == 1 else "schedulers are"
