"""Ranks of one training use different optimizer settings or step counts."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import Ranks, together
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import BETA1, BETA2, EPSILON, LR, MOMENTUM, WEIGHT_DECAY

_SETTINGS = (LR, WEIGHT_DECAY, MOMENTUM, BETA1, BETA2, EPSILON)


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(LR,))
def rank_settings_apart(
    facts: Facts,
    *,
    tolerance: Annotated[float, "relative difference of settings that are equal"] = 1e-5,
) -> Iterator[Verdict]:
    """Ranks of one training use different optimizer settings or step counts.

    ## What it does
    Compares learning rate, weight decay, momentum, betas and epsilon between ranks, step by step,
    if a torch wrapper trains one model on all of them. It also compares the number of steps of
    finished ranks.

    ## Why it matters
    All ranks apply the same averaged gradient. With different settings they apply different updates
    to it, and the weights drift apart with every step.

    ## Example
    ```python
    if rank == 0: scheduler.step()     # bad
    scheduler.step()                   # good
    ```

    ## What to do
    Configure and step optimizer and scheduler identically on all ranks. A scheduler that depends on
    a metric, such as `ReduceLROnPlateau`, needs the same value on all ranks: all-reduce it first.

    ## When it is wrong
    Ranks that update different parameters of the model, each with its own settings.

    ## How to confirm
    - Print `optimizer.param_groups[0]["lr"]` on every rank at the named step.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield rank_settings_apart.not_examined(ranks)
        return
    if not ranks.is_wrapped:
        yield rank_settings_apart.not_examined("no torch wrapper trains one model on all ranks")
        return
    found = _settings(ranks, tolerance) or _steps(facts, ranks)
    yield found or rank_settings_apart.clear(f"equal on {len(ranks.members)} ranks")


def _settings(ranks: Ranks, tolerance: float) -> Finding | None:
    """Return a finding about the setting that differs first."""
    found: list[tuple[int, Finding]] = []
    for signal in _SETTINGS:
        owners = ranks.owners(signal)
        for owner in owners:
            read = together(ranks, signal, owner)
            apart = read.apart(tolerance)
            if not apart.any():
                continue
            place = int(apart.argmax())
            step, values = int(read.steps[place]), read.values[:, place]
            low, high = values.min(), values.max()
            of = f" of {owner}" if len(owners) > 1 else ""
            finding = rank_settings_apart.finding(
                f"{signal}{of} differs between ranks from step {step} on: {low:.3g} to {high:.3g}",
                confidence=Confidence.CERTAIN,
                onset=step,
                evidence=(
                    Evidence(
                        signal,
                        (step, int(read.steps[-1])),
                        f"{low:.3g} on one rank and {high:.3g} on another",
                        owner,
                    ),
                ),
                fix="configure and step optimizer and scheduler identically on all ranks;"
                " all-reduce the metric that a scheduler depends on",
            )
            found.append((step, finding))
    return min(found, key=lambda each: each[0])[1] if found else None


def _steps(facts: Facts, ranks: Ranks) -> Finding | None:
    """Return a finding about ranks that finished after different numbers of steps."""
    steps = {rank.run.steps for rank in ranks.members}
    finished = all(rank.run.meta.status == "finished" for rank in ranks.members)
    if len(steps) < 2 or not finished or ranks.are_joined:
        return None
    return rank_settings_apart.finding(
        f"ranks finished after {min(steps)} to {max(steps)} steps",
        confidence=Confidence.CERTAIN,
        onset=min(steps),
        evidence=(
            Evidence(
                LR,
                (0, max(facts.run.steps - 1, 0)),
                f"{facts.run.steps} steps on rank {facts.run.rank}",
                next(iter(facts.run[LR])),
            ),
        ),
        fix="call `optimizer.step()` the same number of times on all ranks",
    )
