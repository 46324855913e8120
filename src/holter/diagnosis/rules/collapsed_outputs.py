"""A generator returns almost the same output for every input."""

import math
from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number, percent, unmet
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import RESPONSE_INPUT_SPREAD, RESPONSE_SPREAD


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(RESPONSE_SPREAD, RESPONSE_INPUT_SPREAD),
    preview=True,
)
def collapsed_outputs(
    facts: Facts,
    *,
    min_units: Annotated[int, "units of an output"] = 2,
    min_steps: Annotated[int, "steps of training needed"] = 100,
    share: Annotated[float, "share of the spread of real samples that is reported"] = 0.15,
) -> Iterator[Verdict]:
    """A generator returns almost the same output for every input.

    ## What it does
    Compares the standard deviation between samples of a model's outputs with that of the real
    samples that a second model receives. It reports a far smaller one although the inputs of the
    generator vary. At some steps the second model must receive those outputs themselves.

    ## Why it matters
    The generator returns only the one sample that its adversary accepts (mode collapse). The losses
    of both may look balanced.

    ## Example
    ```python
    loss_g = criterion(critic(generator(torch.zeros_like(z))), ones)   # bad
    loss_g = criterion(critic(generator(z)), ones)                     # good
    ```

    ## What to do
    Train the adversary more (a higher learning rate, more steps), penalise its gradients, compare
    samples within a batch, or use a Wasserstein loss. Check that the generator receives new noise
    in every call.

    ## When it is wrong
    A generator whose samples are meant to be alike, next to a model that receives other data.

    ## How to confirm
    - Compare `generator(z).std(0)` for a batch of noise with `real.std(0)`.
    """
    if facts.run.steps < min_steps or len(facts.run.meta.model) < 2:
        yield collapsed_outputs.not_examined(
            unmet(
                (len(facts.run.meta.model) > 1, "no two models are trained"),
                (
                    facts.run.steps >= min_steps,
                    f"{facts.run.steps} of the {min_steps} steps needed",
                ),
            )
        )
        return
    pairs = [
        (made, judge)
        for made in facts.responses
        for judge in facts.responses
        if made.owner != judge.owner
        and made.units == judge.given_units >= min_units
        and judge.units != made.units
        and judge.given > 0
        and not math.isnan(made.given)
        and made.passes_on_to(judge)
    ]
    if not pairs:
        yield collapsed_outputs.not_examined(
            "no model receives both the output of another model and other samples"
        )
        return
    made, judge = min(pairs, key=lambda pair: pair[0].final / pair[1].given)
    measured = (
        f"the outputs of {made.owner} vary between samples by {number(made.final)},"
        f" {percent(made.final / judge.given)} of the spread of other inputs of {judge.owner}"
        f" ({number(judge.given)})"
    )
    if made.final >= share * judge.given or not made.given > 0:
        yield collapsed_outputs.clear(measured)
        return
    yield collapsed_outputs.finding(
        measured,
        confidence=Confidence.LIKELY,
        onset=made.fell_at(share * judge.given),
        evidence=(
            Evidence(
                RESPONSE_SPREAD,
                (made.spread.first, made.spread.last),
                f"{number(made.final)} at the end",
                made.owner,
            ),
            Evidence(
                RESPONSE_INPUT_SPREAD,
                (judge.spread.first, judge.spread.last),
                f"real samples vary by {number(judge.given)}",
                judge.owner,
            ),
        ),
        fix="train the adversary more, with a higher learning rate or more steps, or penalise its"
        " gradients",
    )
