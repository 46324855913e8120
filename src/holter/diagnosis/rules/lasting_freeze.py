"""Parameters were frozen after they were passed to the optimizer, and never unfrozen."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import Parameter, by_optimizer, covering, latest
from holter.diagnosis.facts.windows import windows
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import some
from holter.record.events import StateLoaded
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_NORM,
    PARAMETER_GIVEN,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
)


@exception
def in_stages(_: Facts, frozen: list[Parameter], __: int | None) -> str | None:
    """The parts are frozen one after another, as a schedule does."""
    steps = sorted({each.since for each in frozen})
    if len(steps) < 2:
        return None
    return f"{len(frozen)} parameters are frozen in stages, at steps {some(list(map(str, steps)))}"


@exception
def loaded(facts: Facts, frozen: list[Parameter], first: int | None) -> str | None:
    """The frozen weights come from a checkpoint, so they may be frozen on purpose."""
    if first is not None or not any(e.what.found for e in facts.run.events_of(StateLoaded)):
        return None
    return f"{len(frozen)} parameters were never updated, and a state was loaded"


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(PARAMETER_GIVEN, PARAMETER_TRAINABLE, PARAMETER_OPTIMIZER, GRAD_NORM),
    exceptions=(in_stages, loaded),
    preview=True,
)
def lasting_freeze(
    facts: Facts,
    *,
    min_samples: Annotated[int, "sampled steps of the optimizer after the freeze"] = 3,
    min_steps: Annotated[int, "steps from the freeze to the last of them"] = 10,
    min_share: Annotated[float, "share of the run that these steps make up"] = 0.2,
    minor: Annotated[float, "share of the parameters below which it is only information"] = 0.1,
) -> Iterator[Verdict]:
    """Parameters were frozen after they were passed to the optimizer, and never unfrozen.

    ## What it does
    Looks for parameters that required a gradient when they were passed to the optimizer, are frozen
    later, and stay frozen until the end while the optimizer keeps updating others.

    ## Why it matters
    There is no error, and the other parameters still learn. A typical cause is a probe, an
    evaluation or a helper that freezes the model and does not restore it.

    ## Example
    ```python
    encoder.requires_grad_(False); probe(encoder)                                 # bad
    encoder.requires_grad_(False); probe(encoder); encoder.requires_grad_(True)   # good
    ```

    ## What to do
    Search for `requires_grad` in code that runs between training steps: evaluation, probes,
    sampling, export. Restore it there, or use `torch.no_grad()` instead of freezing.

    ## When it is wrong
    A part that is frozen on purpose after the optimizer was created. Freeze it earlier, or pass
    only trainable parameters to the optimizer.

    ## How to confirm
    - Print `[n for n, p in model.named_parameters() if not p.requires_grad]` at the end of the run.
    """
    given = latest(facts, PARAMETER_GIVEN)
    groups = by_optimizer(facts.parameters)
    frozen = {
        optimizer: [p for p in held if not p.trainable and given.get(p.name, (0, 0))[0]]
        for optimizer, held in groups.items()
    }
    frozen = {optimizer: held for optimizer, held in frozen.items() if held}
    if not frozen:
        count = sum(map(len, groups.values()))
        yield lasting_freeze.clear(f"none of {count} parameters was frozen after it was passed")
        return
    for optimizer, held in frozen.items():
        steps, first = _steps(facts, groups[optimizer], held)
        names = [each.name for each in held]
        since = min(each.since for each in held)
        count = steps[-1] - since + 1 if len(steps) >= min_samples else 0
        if count < max(min_steps, min_share * facts.run.steps):
            yield lasting_freeze.clear(
                f"{some(names)}: {count} steps of the optimizer since they were frozen"
            )
        elif (excuse := lasting_freeze.excused(facts, held, first)) is not None:
            yield excuse
        else:
            yield _finding(facts, groups[optimizer], held, steps=steps, first=first, minor=minor)


def _steps(
    facts: Facts, group: list[Parameter], frozen: list[Parameter]
) -> tuple[list[int], int | None]:
    """The steps since the freeze on which others had gradients, and the first of the frozen ones.

    A network that is frozen for the updates of its adversary alone has gradients again and again.
    """
    since = {each.name: each.since for each in frozen}
    others = {each.name for each in group} - set(since)
    begin = min(since.values())
    steps: list[int] = []
    firsts: list[int] = []
    for rows in windows(facts, GRAD_NORM):
        nonzero = rows.present & (rows.values != 0)
        is_other = np.array([owner in others for owner in rows.owners], bool)
        active = rows.steps[nonzero[:, is_other].any(axis=1)].tolist()
        steps += [step for step in active if step >= begin]
        for column, owner in enumerate(rows.owners):
            own = rows.steps[nonzero[:, column]].tolist() if owner in since else []
            if own and own[-1] > since[owner]:
                return [], None
            firsts += own[:1]
    return sorted(steps), min(firsts, default=None)


def _finding(
    facts: Facts,
    group: list[Parameter],
    frozen: list[Parameter],
    *,
    steps: list[int],
    first: int | None,
    minor: float,
) -> Verdict:
    names = [each.name for each in frozen]
    others = {each.name for each in group}.difference(names)
    where = covering(names, others)
    since = min(each.since for each in frozen)
    course = (
        "before their first update" if first is None else f"at step {since}, after having learned"
    )
    return lasting_freeze.finding(
        f"{some(where)} ({len(names)} of the optimizer's {len(group)} parameters): frozen"
        f" {course}, and not unfrozen in {steps[-1] - since + 1} steps",
        severity=Severity.INFO if len(names) < minor * len(group) else Severity.WARNING,
        confidence=Confidence.LIKELY if first is None else Confidence.HINT,
        onset=since,
        evidence=(
            Evidence(
                PARAMETER_TRAINABLE,
                (since, facts.run.steps - 1),
                "required a gradient when it was passed to the optimizer, and requires none since"
                f" step {since}",
                names[0],
            ),
            Evidence(
                GRAD_NORM,
                (steps[0], steps[-1]),
                f"{some(sorted(others))}: gradients on {len(steps)} sampled steps since",
                min(others),
            ),
        ),
        fix=f"call `requires_grad_(True)` on {where[0].removesuffix('.*')} after the code that"
        " freezes it, or use `torch.no_grad()` there instead of freezing",
    )
