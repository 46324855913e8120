"""Parameters of the model get gradients, but no optimizer holds them."""

from collections.abc import Iterator

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
def parameters_outside_optimizer(facts: Facts, *, min_steps: int = 3) -> Iterator[Verdict]:
    """Parameters of the model get gradients, but no optimizer holds them.

    ## What it does
    Looks for parameters of a trained model that require gradients, got some that were not zero
    on at least `min_steps` steps, and are in no optimizer. It is an error when no optimizer holds
    anything that gets a gradient, for then nothing learns. Otherwise it is a warning: leaving a
    backbone out and training only a head is a common choice.

    ## Why it matters
    These parameters keep their initial values. A new head stays random, and the rest of the model
    learns to please a random head: the loss falls, though never as far as it should.

    ## What to do
    Build the optimizer last, after every layer was added or replaced, or hand new layers over
    with `optimizer.add_param_group`. Layers kept in a plain list are found by no `parameters()`
    call: use `nn.ModuleList`.

    ## When it is wrong
    Parameters left out on purpose. Say so with `requires_grad_(False)`: the finding goes away,
    and so does the cost of their gradients. A custom update that does not go through an optimizer
    is not seen.

    ## How to confirm
    - Compare the sets: `{id(p) for p in model.parameters()}` less the ids of all `p` in
      `optimizer.param_groups` has to be empty.
    - Repeat the run with the optimizer built directly before the training loop.
    """
    known = facts.parameters
    ours = [each for each in known if each.trainable and each.in_model]
    loose = {each.name: each.since for each in ours if each.optimizer < 0}
    if not loose:
        yield parameters_outside_optimizer.clear(
            f"an optimizer holds all {len(ours)} trainable parameters of the model"
        )
        return
    if facts.run.steps < min_steps:
        yield parameters_outside_optimizer.not_examined(
            f"{facts.run.steps} steps were recorded; it takes {min_steps}"
        )
        return
    gradients = nonzero_gradients(facts, loose, enough=min_steps)
    outside = [name for name in loose if gradients[name] >= min_steps]
    if not outside:
        yield parameters_outside_optimizer.clear(
            f"the {len(loose)} parameters that no optimizer holds get no gradient"
        )
        return
    held = {each.name: 0 for each in known if each.optimizer >= 0}
    learning = sum(count > 0 for count in nonzero_gradients(facts, held, enough=1).values())
    where = covering(outside, {each.name for each in known}.difference(outside))
    onset = min(loose[name] for name in outside)
    yield parameters_outside_optimizer.finding(
        f"{some(where)}: {len(outside)} of {len(ours)} trainable parameters of the model get"
        f" gradients from step {onset} on and are in no optimizer",
        severity=Severity.WARNING if learning else Severity.ERROR,
        confidence=Confidence.CERTAIN,
        onset=onset,
        evidence=(
            Evidence(
                PARAMETER_OPTIMIZER,
                (onset, facts.run.steps - 1),
                f"{len(outside)} trainable parameters are in no optimizer;"
                f" {learning} with gradients are in one",
                outside[0],
            ),
            Evidence(
                GRAD_NORM,
                (onset, facts.run.steps - 1),
                f"at least {min(gradients[name] for name in outside)} gradients that are not zero",
                outside[0],
            ),
        ),
        fix=f"give the optimizer {where[0]}, too (model.parameters(), once the model is whole), or"
        " freeze it with requires_grad_(False) if it is left out on purpose",
    )
