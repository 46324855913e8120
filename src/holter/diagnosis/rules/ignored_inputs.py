"""The outputs do not depend on the inputs."""

import math
from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import INPUT_LOSS, INPUT_RESPONSE, INPUT_ROUNDING

_ALL = "all inputs"


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(INPUT_RESPONSE, INPUT_ROUNDING),
)
def ignored_inputs(
    facts: Facts,
    *,
    min_response: Annotated[float, "change of an output in standard deviations"] = 0.0,
) -> Iterator[Verdict]:
    """The outputs do not depend on the inputs.

    ## What it does
    Uses the experiment `input-control`: the model receives the inputs of another batch, before and
    after some training. It reports if no output changes by more than rounding both times, and gives
    a hint if only one of several inputs has no effect, such as a time step or a condition.

    ## Why it matters
    Such a model can only learn the best constant prediction: the class frequencies, or the mean of
    the targets. Neither a different learning rate nor longer training helps.

    ## Example
    ```python
    x = self.body(inputs); return self.head(torch.zeros_like(x))     # bad
    x = self.body(inputs); return self.head(x)                       # good
    ```

    ## What to do
    Follow the input through `forward`: is it overwritten, multiplied by zero, masked completely,
    or lost in a branch that is not returned? Are all units of a layer dead? Is dropout at 1?

    ## When it is wrong
    Unconditional models that receive data nevertheless. An input that is passed along but should
    not matter.

    ## How to confirm
    - Print the output for two very different samples.
    """
    responses = {name: series.values for name, series in facts.run[INPUT_RESPONSE].items()}
    limit = max(float(facts.run[INPUT_ROUNDING][""].values.max()), min_response)
    ignored = [name for name, values in responses.items() if float(values.max()) <= limit]
    if _ALL not in responses:
        yield ignored_inputs.not_examined("the model cannot be called with inputs of another batch")
    elif _ALL in ignored and len(responses[_ALL]) < 2:
        yield ignored_inputs.not_examined("no weight moved, so outputs that start at zero stay")
    elif _ALL in ignored:
        largest = float(responses[_ALL].max())
        yield ignored_inputs.finding(
            f"inputs of another batch change the outputs by {largest:.1g} standard deviations,"
            " before and after some training",
            confidence=Confidence.CERTAIN,
            onset=0,
            evidence=(
                Evidence(
                    INPUT_RESPONSE,
                    (0, 1),
                    f"{largest:.1g} (rounding: {limit:.1g})",
                    _ALL,
                ),
            ),
            fix="follow the input through `forward()`: it is dropped, masked or zeroed",
        )
    else:
        measured = _measured(facts, float(responses[_ALL].max()))
        if not ignored or any(len(responses[name]) < 2 for name in ignored):
            yield ignored_inputs.clear(measured)
            return
        yield ignored_inputs.finding(
            f"other values of the input {some(ignored)} change no output, before and after some"
            " training; other inputs do",
            confidence=Confidence.HINT,
            severity=Severity.WARNING,
            onset=0,
            evidence=(Evidence(INPUT_RESPONSE, (0, 1), f"0 (rounding: {limit:.1g})", ignored[0]),),
            fix=f"follow `{ignored[0]}` through `forward()`: it is overwritten or not used",
        )


def _measured(facts: Facts, response: float) -> str:
    measured = "inputs of another batch change the outputs"
    if math.isfinite(response):  # outputs that are all equal have no deviation
        measured += f" by {response:.2g} standard deviations"
    if INPUT_LOSS not in facts.run:
        return measured
    own, other = (
        float(facts.run[INPUT_LOSS][name].values[-1]) for name in ("own inputs", "other inputs")
    )
    if not own < other:  # the batch is not learned yet
        return measured
    return f"{measured}; the loss of a trained batch is {own:.3g}, with other inputs {other:.3g}"
