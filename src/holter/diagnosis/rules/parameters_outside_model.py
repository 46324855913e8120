"""An optimizer holds parameters that belong to no model in training."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import (
    Parameter,
    all_step,
    by_optimizer,
    keeps_gradient,
    nonzero_gradients,
    was_replaced,
)
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NORM, PARAMETER_IN_MODEL, PARAMETER_OPTIMIZER


@exception
def never_stepped(facts: Facts, optimizers: int, stale: list[Parameter], held: int) -> str | None:
    """The optimizer has not stepped yet; it is reserved for a later phase."""
    has_stepped = any(was_replaced(facts, parameter) for parameter in stale)
    if len(stale) < held or has_stepped or all_step(facts, optimizers):
        return None
    return f"none of the {held} parameters of an optimizer is in a model; it has not stepped yet"


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(PARAMETER_OPTIMIZER, PARAMETER_IN_MODEL),
    exceptions=(never_stepped,),
)
def parameters_outside_model(
    facts: Facts, *, min_steps: Annotated[int, "steps needed"] = 3
) -> Iterator[Verdict]:
    """An optimizer holds parameters that belong to no model in training.

    ## What it does
    Looks for trainable parameters in an optimizer that belong to no trained model, or to one that
    was replaced during the run, and receive no gradient since. It is an error if this is true of
    all parameters of the optimizer, otherwise a warning.

    ## Why it matters
    The model or one of its layers was re-created after the optimizer was built. The optimizer
    updates tensors that nothing uses, and the layers in use are never updated.

    ## Example
    ```python
    optimizer = SGD(model.parameters(), lr=0.1); model = Net()  # bad
    model = Net(); optimizer = SGD(model.parameters(), lr=0.1)  # good
    ```

    ## What to do
    Build the optimizer after the last change to the model: after re-initialising, resuming,
    replacing a head, pruning, and any move or wrapper that creates new parameters.

    ## When it is wrong
    Parameters that a script uses directly, such as a learned temperature, receive gradients and are
    not reported; a parameter reserved for a later phase has none yet and is reported.

    ## How to confirm
    - Compare the sets: the ids of all `p` in `optimizer.param_groups` less
      `{id(p) for p in model.parameters()}` must be empty.
    - Repeat the run with the optimizer built directly before the training loop.
    """
    # A frozen parameter gets no gradient wherever it is.
    groups = by_optimizer(parameter for parameter in facts.parameters if parameter.trainable)
    loose = {p.name: p.outside_since for held in groups.values() for p in held if not p.in_model}
    if loose and facts.run.steps < min_steps:
        yield parameters_outside_model.not_examined(
            f"{facts.run.steps} of the {min_steps} steps needed"
        )
        return
    used = nonzero_gradients(facts, loose, enough=1) if GRAD_NORM in facts.run and loose else {}
    verdicts = []
    for optimizer, held in groups.items():
        stale = [
            parameter
            for parameter in held
            if not parameter.in_model
            and (not used.get(parameter.name) or _is_left_over(facts, parameter))
            and facts.run.steps - parameter.since >= min_steps
        ]
        if stale:
            excuse = parameters_outside_model.excused(facts, len(groups), stale, len(held))
            which = f"optimizer {optimizer}" if len(groups) > 1 else "the optimizer"
            verdicts.append(excuse or _finding(facts, which, stale, len(held)))
    yield from verdicts
    if not verdicts:
        count = sum(len(held) for held in groups.values())
        outside = f", {len(loose)} of them outside any model" if loose else ""
        yield parameters_outside_model.clear(
            f"no stale parameter among the {count} that optimizers hold{outside}"
        )


def _is_left_over(facts: Facts, parameter: Parameter) -> bool:
    """Whether the gradients that are read are the last one of a model that was replaced."""
    return was_replaced(facts, parameter) and keeps_gradient(facts, parameter)


def _finding(facts: Facts, which: str, stale: list[Parameter], held: int) -> Verdict:
    names = [parameter.name for parameter in stale]
    onset = min(parameter.since for parameter in stale)
    share = f"none of the {held}" if len(stale) == held else f"{held - len(stale)} of the {held}"
    replaced = any(was_replaced(facts, parameter) for parameter in stale)
    span = f"in {facts.run.steps} steps"
    if replaced:
        span = f"in the {facts.run.steps - onset} steps since the model was replaced (step {onset})"
    return parameters_outside_model.finding(
        f"{share} parameters that {which} holds belong to a model in training; the other"
        f" {len(stale)} received no gradient {span}"
        if len(stale) < held
        else f"{share} parameters that {which} holds belong to a model in training, and none"
        f" received a gradient {span}",
        severity=Severity.ERROR if len(stale) == held else Severity.WARNING,
        confidence=Confidence.CERTAIN,
        onset=onset,
        evidence=(
            Evidence(
                PARAMETER_IN_MODEL,
                (onset, facts.run.steps - 1),
                f"in no model, without a gradient: {some(names)}",
                names[0],
            ),
        ),
        fix=f"build {which} after the last line that creates or replaces the model or its layers:"
        " `model = Net(); optimizer = SGD(model.parameters(), lr=...)`",
    )
