"""The targets are the inputs themselves."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.run import Run
from holter.signals import TARGET_INPUT_MATCH


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_INPUT_MATCH,),
    explains=("validation-better-than-training",),
)
def targets_equal_inputs(run: Run, *, share: float = 0.98, min_steps: int = 5) -> Iterator[Verdict]:
    """The targets are the inputs themselves.

    ## What it does
    Compares the integer targets of the loss with the integer input of the model, place by place. It
    speaks where at least `share` of them are equal, on all of at least `min_steps` sampled steps.

    ## Why it matters
    A language model whose targets are not shifted learns to copy its input. Its loss falls to
    nearly zero, faster than any real text allows, and it has learned nothing of use.

    ## What to do
    Shift by one, exactly once: `logits[:, :-1]` against `tokens[:, 1:]`. Models that take `labels`
    often shift inside.

    ## When it is wrong
    Autoencoders of tokens are meant to return their input. Masked language models score masked
    places only, where input and target differ.

    ## How to confirm
    - Generate a few tokens: a model that copies repeats its prompt.
    - Print `(inputs == targets).float().mean()`.
    """
    for owner, match in run[TARGET_INPUT_MATCH].items():
        if not len(match):
            continue
        least = float(match.values.min())
        said = f"{least:.0%} or more of the targets of {owner} equal the input at their place"
        if least < share:
            yield targets_equal_inputs.clear(f"{owner}: {float(np.median(match.values)):.0%} equal")
        elif len(match) < min_steps:
            yield targets_equal_inputs.not_examined(f"{len(match)} of the {min_steps} steps needed")
        else:
            yield targets_equal_inputs.finding(
                f"{said}, on all {len(match)} sampled steps: the model learns to copy",
                confidence=Confidence.CERTAIN if least == 1 else Confidence.LIKELY,
                onset=match.first,
                evidence=(Evidence(TARGET_INPUT_MATCH, (match.first, match.last), said, owner),),
                fix="shift the targets by one: logits[:, :-1] against tokens[:, 1:]",
            )
