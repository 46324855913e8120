"""The outputs do not depend on the inputs."""

from collections.abc import Iterator

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
def ignored_inputs(facts: Facts, *, min_response: float = 0.0) -> Iterator[Verdict]:
    """The outputs do not depend on the inputs.

    ## What it does
    Reads the experiment input-control: the model is given the inputs of another batch, before and
    after some training. The rule speaks where no output changes by more than rounding, or by more
    than `min_response` standard deviations, both times. A single input of several that changes
    nothing is noted as normal.

    ## Why it matters
    Such a model can learn one answer for all: the most frequent class, the mean of the targets. No
    learning rate and no longer training will help.

    ## What to do
    Follow the input through `forward`: is it overwritten, multiplied by zero, masked completely,
    or lost in a branch that is not returned? Are all units of a layer dead? Is dropout at 1?

    ## When it is wrong
    Models of something that has no input, such as one distribution, that are given data all the
    same.

    ## How to confirm
    - Print the output for two very different samples.
    """
    responses = {name: each.values for name, each in facts.run[INPUT_RESPONSE].items()}
    limit = max(float(facts.run[INPUT_ROUNDING][""].values.max()), min_response)
    silent = [name for name, each in responses.items() if float(each.max()) <= limit]
    moments = len(responses.get(_ALL, ()))
    if _ALL not in responses:
        yield ignored_inputs.not_examined("the model cannot be called with inputs of another batch")
    elif _ALL in silent and moments < 2:
        yield ignored_inputs.not_examined("no weight moved, so that outputs at zero stay there")
    elif _ALL in silent:
        largest = float(responses[_ALL].max())
        yield ignored_inputs.finding(
            "outputs are the same whatever the input: those of another batch change them by"
            f" {largest:.1g} standard deviations, before training and after some of it",
            confidence=Confidence.CERTAIN,
            onset=0,
            evidence=(
                Evidence(
                    INPUT_RESPONSE,
                    (0, 1),
                    f"{largest:.1g}, where rounding makes {limit:.1g}",
                    _ALL,
                ),
            ),
            fix="follow the input through forward(): somewhere it is dropped, masked or zeroed",
        )
    else:
        if silent and len(silent) < len(responses):
            yield ignored_inputs.normal(f"{some(silent)} changes no output; others do")
        yield ignored_inputs.clear(_measured(facts, float(responses[_ALL].max())))


def _measured(facts: Facts, response: float) -> str:
    said = f"inputs of another batch change outputs by {response:.2g} standard deviations"
    if INPUT_LOSS not in facts.run:
        return said
    own, other = (
        float(facts.run[INPUT_LOSS][name].values[-1]) for name in ("own inputs", "other inputs")
    )
    if not own < other:  # a batch that is not learned yet tells nothing
        return said
    return f"{said}; the loss of a batch trained on is {own:.3g}, with other inputs {other:.3g}"
