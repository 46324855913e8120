"""Parts of the input have no effect on any output."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.facts.weak import is_weak
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import USE_CHANGE, USE_ROUNDING

_LISTED = 6  # parts that are named
_WHOLE = "input "  # before the name of an input that is exchanged as a whole


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(USE_CHANGE, USE_ROUNDING),
)
def unused_inputs(
    facts: Facts,
    *,
    min_share: Annotated[float, "unused share of the columns that makes it likely"] = 0.5,
    max_rounding: Annotated[float, "difference of two equal calls, in standard deviations"] = 0.01,
    min_positions: Annotated[
        float, "unused share of the positions, below which they may be"
    ] = 0.75,
) -> Iterator[Verdict]:
    """Parts of the input have no effect on any output.

    ## What it does
    Uses the experiment `input-use`: in eval mode, one table column, sequence position or image
    channel is swapped between the samples of a batch. Reports columns and channels that change no
    output, sequences in which most positions change none (both unless the training learned nearly
    everything), and one of several inputs that has no effect at all, in train mode either. Without
    a failure it is a hint.

    ## Why it matters
    The model cannot learn from inputs that do not reach it. Typical causes are wrong indices (every
    embedding reads column 0), the output of the first time step instead of the last, or a slice
    that is too short; the loss falls as far as the remaining inputs allow.

    ## Example
    ```python
    [table(x[:, 0]) for table in self.tables]                       # bad
    [table(x[:, k]) for k, table in enumerate(self.tables)]         # good
    ```

    ## What to do
    Follow the named part through `forward`. After a recurrent layer take the last time step
    (`output[:, -1]`), or all of them.

    ## When it is wrong
    Columns that the model ignores on purpose, such as an identifier; a window longer than the
    model's receptive field.

    ## How to confirm
    - Set the named part to zero and compare the outputs in eval mode.
    """
    limit = float(facts.run[USE_ROUNDING][""].values.max())
    if limit > max_rounding:
        yield unused_inputs.not_examined("the model returns different outputs for the same inputs")
        return
    outcome = facts.run_outcome
    poor = outcome.bad or is_weak(outcome)
    for trial, series in facts.run[USE_CHANGE].items():
        if trial.startswith(_WHOLE):
            yield _whole(trial.removeprefix(_WHOLE), series, limit, poor=poor)
            continue
        unused = [int(at) for at in series.steps[series.values <= limit]]
        share = len(unused) / len(series)
        measured = f"{len(series) - len(unused)} of {len(series)} {trial} change an output"
        is_position = trial.startswith("positions")
        if not unused or share == 1 or (is_position and share < min_positions):
            yield unused_inputs.clear(measured)
            continue
        if not poor and outcome.state is not OutcomeState.UNKNOWN:
            yield unused_inputs.harmless(f"only {measured}; {outcome.says}")
            continue
        likely = poor and share >= (min_positions if is_position else min_share)
        yield _finding(trial, series, unused, measured, likely=likely)


def _whole(name: str, series: Series, limit: float, *, poor: bool) -> Verdict:
    """Judge one of several inputs, exchanged as a whole."""
    if series.values.max() > limit:
        return unused_inputs.clear(f"the input {name} changes an output")
    return unused_inputs.finding(
        f"the input `{name}` of the model has no effect on any output: exchanged between samples,"
        " it changes nothing",
        confidence=Confidence.LIKELY if poor else Confidence.HINT,
        onset=0,
        evidence=(Evidence(USE_CHANGE, (series.first, series.last), "no change", _WHOLE + name),),
        fix=f"follow `{name}` through `forward`: an integer division, a wrong name or an index may"
        " lose it",
    )


def _finding(
    trial: str, series: Series, unused: Sequence[int], measured: str, *, likely: bool
) -> Verdict:
    parts, _, name = trial.partition(" of ")
    numbers = ", ".join(map(str, unused[:_LISTED])) + (", ..." if len(unused) > _LISTED else "")
    return unused_inputs.finding(
        f"only {measured}; without effect: {numbers}",
        confidence=Confidence.LIKELY if likely else Confidence.HINT,
        onset=0,
        evidence=(
            Evidence(
                USE_CHANGE,
                (series.first, series.last),
                f"no change for {len(unused)} of {len(series)}",
                trial,
            ),
        ),
        fix=f"follow {parts} {numbers} of {name} through `forward`",
    )
