"""A schedule made for epochs is stepped with every batch."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import Halt, halted
from holter.diagnosis.facts.schedule import (
    GONE,
    WEAK,
    Laps,
    Pace,
    Rate,
    Scheduler,
)
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, SCHEDULE_STEPS

_EARLY = 0.05  # share of the steps in which no schedule is meant to end
_AS_EPOCHS = 1.5  # a schedule over up to this many times the epochs was counted in epochs
_CYCLES = 3  # troughs that a schedule without restarts does not have


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LR, SCHEDULE_STEPS),
)
def rushed_schedule(
    facts: Facts, *, min_steps: int = 40, gone: float = 1e-3, min_share: float = 0.5
) -> Iterator[Verdict]:
    """A schedule made for epochs is stepped with every batch.

    ## What it does
    Looks at runs of at least `min_steps` steps in which schedulers are stepped with every step of
    the optimizer or more often. The schedule is rushed where the learning rate is under `gone` of
    its peak for `min_share` of the steps and went there within the first epoch, within 5 % of the
    steps, or by numbers (steps between two drops, milestones) that are no larger than the number of
    epochs; with such numbers, a lowest rate of a tenth of the peak is enough. So is a cosine
    without restarts that goes up and down again and again. It is likely if the loss stopped when
    the rate was gone, or if the schedule's numbers are those of epochs.

    ## Why it matters
    Whole epochs of learning are squeezed into some batches. The rest of the training runs at a
    learning rate of nearly 0 (or at one that swings), and looks converged.

    ## What to do
    Move `scheduler.step()` out of the loop over batches, or give the schedule its length in steps:
    epochs times batches. Under several processes, see that only one step is made for each update.

    ## When it is wrong
    A short schedule on purpose, followed by a long tail at a tiny rate. A cosine that is used as a
    cyclic schedule.

    ## How to confirm
    - Print the learning rate at the end of each epoch.
    - Repeat two epochs with `scheduler.step()` once per epoch and compare the losses.
    """
    known, often, epochs = facts.rates, facts.scheduler_pace, facts.epochs
    if often is None or not known or facts.run.steps < min_steps:
        yield rushed_schedule.not_examined(
            f"{facts.run.steps} steps; it takes {min_steps}, and a scheduler that is stepped"
        )
        return
    if not often.is_per_step:
        yield rushed_schedule.clear(
            f"schedulers are stepped {often.per_step:.2g} times a step, about"
            f" {often.calls:.0f} times in all"
        )
        return
    for rate in known:
        at = rate.first_below(max(1.01 * gone, _low_end(facts, rate, epochs)))
        share = 1 - at / facts.run.steps
        cosine = _cosine(facts, rate)
        if at <= 1 and rate.values[at:].max(initial=0) == 0:
            yield rushed_schedule.clear(f"the learning rate{of(rate.optimizer)} is 0 at once")
        elif share >= min_share:
            yield _ended(facts, rate, at, often, epochs)
        elif cosine is not None:
            yield _swinging(rate, cosine, epochs, often)
        else:
            yield rushed_schedule.clear(
                f"the learning rate{of(rate.optimizer)} is under {gone:g} of its peak on"
                f" {share:.0%} of the steps, and rises again {len(rate.troughs)} times"
            )


def _ended(facts: Facts, rate: Rate, step: int, often: Pace, epochs: Laps | None) -> Verdict:
    """The verdict on a rate that is gone from `step` on, for most of the run."""
    share, last = 1 - step / facts.run.steps, facts.run.steps - 1
    counted = _in_epochs(facts, epochs)
    first_lap = epochs is not None and epochs.count > 1 and step <= epochs.length
    if not (counted or first_lap or step <= _EARLY * facts.run.steps):
        return rushed_schedule.clear(
            f"the learning rate{of(rate.optimizer)} was used up at step {step}, after"
            f" {step / facts.run.steps:.0%} of the run"
        )
    halt = _halt(facts, rate)
    if halt is None and not (counted or first_lap):
        return rushed_schedule.clear(
            f"the learning rate{of(rate.optimizer)} was used up at step {step}, and the loss was"
            " down by then or went on falling"
        )
    where = "" if epochs is None else f" of {epochs.count} {epochs.kind}"
    progress = "" if epochs is None else f", {step / epochs.length:.2g}{where}"
    return rushed_schedule.finding(
        f"the learning rate{of(rate.optimizer)} falls from {rate.peak:.3g} to"
        f" {rate.at(step):.2g} by step {step}{progress}, and stays there for {share:.0%}"
        f" of the run: {_who(facts)} stepped {often.per_step:.2g} times a step",
        confidence=Confidence.LIKELY if halt or (counted and first_lap) else Confidence.HINT,
        onset=max(step // 2, 0),
        evidence=(
            Evidence(LR, (0, last), f"{rate.at(step):.2g} and less from step {step}", rate.group),
            Evidence(SCHEDULE_STEPS, (0, last), f"{often.per_step:.2g} calls a step"),
            *_loss(facts, halt),
        ),
        fix="step the scheduler once per epoch, or give it its length in steps",
    )


def _in_epochs(facts: Facts, epochs: Laps | None) -> bool:
    """Whether the numbers of a schedule are no larger than the number of epochs."""
    if epochs is None or epochs.count < 2:
        return False
    numbers = [n for each in facts.schedulers for n in (each.step_size, each.horizon)]
    return any(number is not None and number <= _AS_EPOCHS * epochs.count for number in numbers)


def _low_end(facts: Facts, rate: Rate, epochs: Laps | None) -> float:
    """Where a schedule that was counted in epochs ends, as a share of its peak, if that is low."""
    end = float(rate.relative[-1])
    return 1.01 * end if _in_epochs(facts, epochs) and end <= WEAK else 0.0


def _cosine(facts: Facts, rate: Rate) -> Scheduler | None:
    """A cosine without restarts whose rate swings."""
    if len(rate.troughs) < _CYCLES:
        return None
    return next((each for each in facts.schedulers if each.name == "CosineAnnealingLR"), None)


def _swinging(rate: Rate, cosine: Scheduler, epochs: Laps | None, often: Pace) -> Verdict:
    first, last = int(rate.steps[0]), int(rate.steps[-1])
    counted = (
        epochs is not None
        and cosine.horizon is not None
        and epochs.count > 1
        and cosine.horizon <= _AS_EPOCHS * epochs.count
    )
    against = f"; the run has {epochs.count} {epochs.kind}" if epochs is not None else ""
    return rushed_schedule.finding(
        f"the learning rate{of(rate.optimizer)} swings: {cosine}, stepped {often.per_step:.2g}"
        f" times a step, rises again {len(rate.troughs)} times{against}",
        confidence=Confidence.LIKELY if counted else Confidence.HINT,
        onset=int(rate.troughs[0]),
        evidence=(
            Evidence(LR, (first, last), f"{len(rate.troughs)} troughs", rate.group),
            Evidence(SCHEDULE_STEPS, (first, last), f"{often.per_step:.2g} calls a step"),
        ),
        fix="step the scheduler once per epoch, or set T_max to the number of steps",
    )


def _halt(facts: Facts, rate: Rate) -> Halt | None:
    loss = facts.falling_loss
    if loss is None:
        return None
    return halted(facts, loss, rate.first_below(WEAK), rate.first_below(GONE))


def _loss(facts: Facts, halt: Halt | None) -> Iterator[Evidence]:
    if halt is not None:
        yield Evidence(LOSS, (0, facts.run.steps - 1), str(halt))


def _who(facts: Facts) -> str:
    names = [str(each) for each in facts.schedulers]
    return f"{names[0]} is" if len(names) == 1 else "schedulers are"
