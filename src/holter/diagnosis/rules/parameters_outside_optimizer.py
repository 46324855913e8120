"""Parameters of the model receive gradients, but no optimizer holds them."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import covering, nonzero_gradients
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_NORM,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
)


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(PARAMETER_TRAINABLE, PARAMETER_OPTIMIZER, PARAMETER_IN_MODEL, GRAD_NORM),
)
def parameters_outside_optimizer(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps with a nonzero gradient"] = 3,
    fitted: Annotated[float, "accuracy, or fall below the best constant prediction"] = 0.9,
) -> Iterator[Verdict]:
    """Parameters of the model receive gradients, but no optimizer holds them.

    ## What it does
    Looks for parameters of a trained model that require gradients, receive nonzero ones, and are in
    no optimizer. It is an error if no parameter with a gradient is in an optimizer, otherwise a
    warning: training only a head on a backbone is a common choice. If all of them form separate
    models, it is a hint, and not reported in a run that fits its data: they may be fixed features.

    ## Why it matters
    These parameters keep their initial values. A new head stays random, and the rest of the model
    adapts to it: the loss falls, but not as far as it could.

    ## Example
    ```python
    optimizer = SGD(model.parameters(), lr=0.1); model.head = nn.Linear(64, 10)  # bad
    model.head = nn.Linear(64, 10); optimizer = SGD(model.parameters(), lr=0.1)  # good
    ```

    ## What to do
    Build the optimizer last, after all layers were added or replaced, or add new layers with
    `optimizer.add_param_group`. `parameters()` does not find layers kept in a plain list: use
    `nn.ModuleList`.

    ## When it is wrong
    Parameters are excluded on purpose. Freeze them with `requires_grad_(False)`: this removes the
    finding and the cost of their gradients. Updates without an optimizer are not seen.

    ## How to confirm
    - Compare the sets: `{id(p) for p in model.parameters()}` less the ids of all `p` in
      `optimizer.param_groups` must be empty.
    - Repeat the run with the optimizer built directly before the training loop.
    """
    trainable = [p for p in facts.parameters if p.trainable and p.in_model]
    loose = {p.name: p.since for p in trainable if p.optimizer < 0}
    if not loose:
        yield parameters_outside_optimizer.clear(
            f"an optimizer holds all {len(trainable)} trainable parameters of the model"
        )
        return
    if facts.run.steps < min_steps:
        yield parameters_outside_optimizer.not_examined(
            f"{facts.run.steps} of the {min_steps} steps needed"
        )
        return
    gradients = nonzero_gradients(facts, loose, enough=min_steps)
    outside = [name for name in loose if gradients[name] >= min_steps]
    if not outside:
        yield parameters_outside_optimizer.clear(
            f"the {len(loose)} parameters that no optimizer holds receive no gradient"
        )
        return
    held = {p.name: 0 for p in facts.parameters if p.optimizer >= 0}
    learning = sum(count > 0 for count in nonzero_gradients(facts, held, enough=1).values())
    where = covering(outside, {p.name for p in facts.parameters}.difference(outside))
    onset = min(loose[name] for name in outside)
    span = onset, facts.run.steps - 1
    whole = learning > 0 and _are_whole_models(facts, set(outside))
    outcome = facts.run_outcome
    if whole and max(outcome.accuracy or 0.0, outcome.gain or 0.0) >= fitted and not outcome.bad:
        yield parameters_outside_optimizer.harmless(
            f"{len(outside)} parameters that receive gradients are in no optimizer, but"
            f" {outcome.says}"
        )
        return
    yield parameters_outside_optimizer.finding(
        f"{len(outside)} of {len(trainable)} trainable parameters receive gradients but are in no"
        f" optimizer: {some(where)}",
        severity=Severity.WARNING if learning else Severity.ERROR,
        confidence=Confidence.HINT if whole else Confidence.CERTAIN,
        onset=onset,
        evidence=(
            Evidence(
                PARAMETER_OPTIMIZER,
                span,
                f"{len(outside)} trainable parameters are in no optimizer; {learning} with"
                " gradients are in one",
                outside[0],
            ),
            Evidence(
                GRAD_NORM,
                span,
                f"nonzero on at least {min(gradients[name] for name in outside)} steps",
                outside[0],
            ),
        ),
        fix="build the optimizer from `model.parameters()` when the model is complete, so that it"
        f" holds {where[0]}; if it is excluded on purpose, freeze it with"
        " `requires_grad_(False)`",
    )


def _are_whole_models(facts: Facts, outside: set[str]) -> bool:
    """Whether no optimizer holds any other parameter of the models that `outside` belong to."""
    prefixes = [f"{model.name}." for model in facts.run.meta.model]
    theirs = tuple(
        prefix for prefix in prefixes if any(name.startswith(prefix) for name in outside)
    )
    named = sum(name.startswith(theirs) for name in outside)
    held = any(p.name.startswith(theirs) and p.optimizer >= 0 for p in facts.parameters)
    return bool(theirs) and named == len(outside) and not held
