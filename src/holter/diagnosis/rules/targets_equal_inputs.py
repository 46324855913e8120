"""The targets are the inputs themselves."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import CROSS_ENTROPIES, readings
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, TARGET_INPUT_MATCH


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_INPUT_MATCH,),
)
def targets_equal_inputs(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 5,
    min_share: Annotated[float, "share of the targets that equal the input, on all steps"] = 0.999,
    min_accuracy: Annotated[float, "accuracy of a model that has learned to copy"] = 0.9,
) -> Iterator[Verdict]:
    """The targets are the inputs themselves.

    ## What it does
    Compares integer targets with the integer input of the model, and real-valued targets with a
    part of the input series: some variables, at the last positions. It reports if practically all
    are equal on all sampled steps, and is certain if a token model has learned to copy.

    ## Why it matters
    A language model or a forecast whose targets are not shifted learns to copy its input. Its loss
    falls to nearly zero, faster than real data allow, but it has learned nothing useful.

    ## Example
    ```python
    loss = cross_entropy(logits.flatten(0, 1), tokens.flatten())                # bad
    loss = cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()) # good
    ```

    ## What to do
    Shift by one, exactly once: `logits[:, :-1]` against `tokens[:, 1:]`. Models that accept
    `labels` often shift internally. The targets of a forecast from hours `a` to `b` begin at
    `a + 1`, or at `b`.

    ## When it is wrong
    Autoencoders of tokens reconstruct their input by design, and so do autoencoders of a series
    with additional inputs such as the time. Not affected: masked language models, which score only
    masked positions, where input and target differ, and slowly changing sequences, which equal
    their shifted copy almost but not quite everywhere.

    ## How to confirm
    - Generate a few tokens: a model that copies repeats its prompt.
    - Print `(inputs == targets).float().mean()`.
    """
    for owner, series in facts.run[TARGET_INPUT_MATCH].items():
        match = readings(facts, TARGET_INPUT_MATCH, owner)  # NaN without a target
        if not len(match):
            yield targets_equal_inputs.not_examined(f"no targets in the batches of {owner}")
            continue
        least, most = float(match.min()), float(match.max())
        if least < min_share:
            yield targets_equal_inputs.clear(
                f"between {percent(least)} and {percent(most)} of the targets of {owner} equal the"
                " input"
                if most
                else f"no target of {owner} equals the input"
            )
        elif len(match) < min_steps:
            yield targets_equal_inputs.not_examined(f"{len(match)} of the {min_steps} steps needed")
        else:
            share = "all" if least == 1 else f"at least {100 * least:.4g} %"
            accuracy = readings(facts, ACCURACY, owner)[-min_steps:]
            copies = least == 1 and len(accuracy) and accuracy.mean() > min_accuracy
            tokens = owner in CROSS_ENTROPIES
            which = "the input at the same position" if tokens else "a part of the model's input"
            yield targets_equal_inputs.finding(
                f"{share} of the targets of {owner} equal {which}, on all {len(match)} sampled"
                " steps: the model learns to copy",
                confidence=Confidence.CERTAIN if copies else Confidence.LIKELY,
                onset=series.first,
                evidence=(
                    Evidence(
                        TARGET_INPUT_MATCH,
                        (series.first, series.last),
                        f"at least {100 * least:.4g} % on {len(match)} steps",
                        owner,
                    ),
                ),
                fix="shift the targets by one: `logits[:, :-1]` against `tokens[:, 1:]`; for a"
                " masked model keep the targets of masked tokens only"
                if tokens
                else "shift the targets by the horizon: `series[a + 1 : b + 1]` for inputs"
                " `series[a:b]`",
            )
