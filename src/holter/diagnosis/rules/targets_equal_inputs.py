"""The targets are the inputs themselves."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, TARGET_INPUT_MATCH

_COPIES = 0.9  # accuracy of a model that has learned to copy


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_INPUT_MATCH,),
)
def targets_equal_inputs(
    facts: Facts, *, share: float = 0.999, min_steps: int = 5
) -> Iterator[Verdict]:
    """The targets are the inputs themselves.

    ## What it does
    Compares the integer targets of the loss with the integer input of the model, place by place.
    It speaks where at least `share` of them are equal, on all of at least `min_steps` sampled
    steps. It is certain where all are and the model has learned to give nine of ten back. Ignored
    targets do not count.

    ## Why it matters
    A language model whose targets are not shifted learns to copy its input. Its loss falls to
    nearly zero, faster than any real text allows, and it has learned nothing of use.

    ## What to do
    Shift by one, exactly once: `logits[:, :-1]` against `tokens[:, 1:]`. Models that take `labels`
    often shift inside.

    ## When it is wrong
    Autoencoders of tokens are meant to return their input. Masked language models score masked
    places only, where input and target differ; sequences that hardly change from one place to the
    next equal themselves, shifted, almost everywhere but not everywhere.

    ## How to confirm
    - Generate a few tokens: a model that copies repeats its prompt.
    - Print `(inputs == targets).float().mean()`.
    """
    for owner, series in facts.run[TARGET_INPUT_MATCH].items():
        match = readings(facts, TARGET_INPUT_MATCH, owner)  # of a batch without a target it is 0/0
        if not len(match):
            continue
        least, most = float(match.min()), float(match.max())
        if least < share:
            yield targets_equal_inputs.clear(
                f"{least:.0%} to {most:.0%} of the targets of {owner} equal the input"
            )
        elif len(match) < min_steps:
            yield targets_equal_inputs.not_examined(f"{len(match)} of the {min_steps} steps needed")
        else:
            said = f"{'all' if least == 1 else f'{least:.2%} or more'} of the targets of {owner}"
            right = readings(facts, ACCURACY, owner)[-min_steps:]
            copies = least == 1 and len(right) and right.mean() > _COPIES
            yield targets_equal_inputs.finding(
                f"{said} equal the input at their place, on all {len(match)} sampled steps: the"
                " model learns to copy",
                confidence=Confidence.CERTAIN if copies else Confidence.LIKELY,
                onset=series.first,
                evidence=(
                    Evidence(
                        TARGET_INPUT_MATCH,
                        (series.first, series.last),
                        f"{least:.2%} or more on {len(match)} steps",
                        owner,
                    ),
                ),
                fix="shift the targets by one (logits[:, :-1] against tokens[:, 1:]), or"
                " keep those of masked tokens only",
            )
