"""An optimizer holds parameters that belong to no model in training."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import all_step, by_optimizer, nonzero_gradients
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NORM, PARAMETER_IN_MODEL, PARAMETER_OPTIMIZER


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(PARAMETER_OPTIMIZER, PARAMETER_IN_MODEL),
)
def parameters_outside_model(facts: Facts, *, min_steps: int = 3) -> Iterator[Verdict]:
    """An optimizer holds parameters that belong to no model in training.

    ## What it does
    Looks for parameters that an optimizer holds, that belong to no trained model and that never
    got a gradient that was not zero, once at least `min_steps` steps were taken with them. It is
    an error when all parameters of the optimizer are of this kind, else a warning.

    ## Why it matters
    The model or a layer of it was built anew after the optimizer was made, so the optimizer
    updates tensors that nobody uses, and the layers in use are never updated.

    ## What to do
    Make the optimizer after the last change to the model: after re-initialising, replacing a
    head, pruning, and any move or wrap that makes new parameters.

    ## When it is wrong
    Loose parameters that a script uses directly, such as a learned temperature, get gradients and
    are silent here; one that is kept for a later phase of the script has none yet and is named. A
    second optimizer that was never seen to step is left out.

    ## How to confirm
    - Compare the sets: the ids of all `p` in `optimizer.param_groups` less
      `{id(p) for p in model.parameters()}` has to be empty.
    - Repeat the run with the optimizer built directly before the training loop.
    """
    # One that is frozen gets no gradient wherever it is: it tells nothing.
    groups = by_optimizer(each for each in facts.parameters if each.trainable)
    strangers = {each.name: 0 for held in groups.values() for each in held if not each.in_model}
    if strangers and facts.run.steps < min_steps:
        yield parameters_outside_model.not_examined(
            f"{facts.run.steps} steps were recorded; it takes {min_steps}"
        )
        return
    used = (
        nonzero_gradients(facts, strangers, enough=1)
        if GRAD_NORM in facts.run and strangers
        else {}
    )
    sick = False
    for optimizer, held in groups.items():
        stale = [
            each
            for each in held
            if not each.in_model
            and not used.get(each.name)
            and facts.run.steps - each.since >= min_steps
        ]
        all_stale = len(stale) == len(held)
        if not stale or (all_stale and not all_step(facts, len(groups))):
            continue
        sick = True
        names = [each.name for each in stale]
        onset = min(each.since for each in stale)
        which = f"optimizer {optimizer}" if len(groups) > 1 else "the optimizer"
        share = f"all {len(held)}" if all_stale else f"{len(stale)} of the {len(held)}"
        yield parameters_outside_model.finding(
            f"{share} parameters that {which} holds are in no model in training, and got no"
            f" gradient in {facts.run.steps} steps",
            severity=Severity.ERROR if all_stale else Severity.WARNING,
            confidence=Confidence.CERTAIN,
            onset=onset,
            evidence=(
                Evidence(
                    PARAMETER_IN_MODEL,
                    (onset, facts.run.steps - 1),
                    f"0 of these {len(stale)} are in a model, none ever had a gradient:"
                    f" {some(names)}",
                    names[0],
                ),
            ),
            fix=f"build {which} after the last line that makes or replaces the model or its layers",
        )
    if not sick:
        count = sum(len(held) for held in groups.values())
        loose = f", {len(strangers)} of them outside any model" if strangers else ""
        yield parameters_outside_model.clear(
            f"no stale parameter among the {count} that optimizers hold{loose}"
        )
