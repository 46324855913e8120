"""The output for one sample depends on the other samples of its batch."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.record import Series
from holter.record.events import MixingModule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    MIXING_MODULES,
    MIXING_OTHERS,
    MIXING_OWN,
    MIXING_ROUNDING,
    MIXING_SHUFFLED,
)


class _Trial:
    """One sample that was replaced, and what changed."""

    def __init__(self, facts: Facts, name: str) -> None:
        self.name = name
        self.others: Series = facts.run[MIXING_OTHERS][name]
        self.own = float(facts.run[MIXING_OWN][name].values[-1])
        self.limit = float(facts.run[MIXING_ROUNDING][name].values[-1])
        self.largest = float(self.others.values.max(initial=0.0))

    @property
    def affected(self) -> int:
        """How many other samples change."""
        return int((self.others.values > self.limit).sum())

    @property
    def only_later(self) -> bool:
        """Whether no sample before the replaced one changes."""
        steps = self.others.steps
        own = int(np.setdiff1d(np.arange(len(steps) + 1), steps)[0])
        return not bool((self.others.values[steps < own] > self.limit).any())


@exception
def batch_statistics(_: Facts, __: Sequence[_Trial], module: MixingModule) -> str | None:
    """Batch norm without running statistics normalises by the batch on purpose."""
    if not module.batch_norm:
        return None
    return f"{module.module} is a batch norm without running statistics: it mixes samples"


@exception
def one_sequence(facts: Facts, trials: Sequence[_Trial], _: MixingModule) -> str | None:
    """Without shuffling, samples that depend only on those before them form one sequence."""
    if _is_shuffled(facts) or not all(trial.only_later for trial in trials):
        return None
    return "outputs depend only on earlier samples, which are in order: one sequence"


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(MIXING_OWN, MIXING_OTHERS, MIXING_ROUNDING),
    exceptions=(batch_statistics, one_sequence),
)
def mixed_samples(
    facts: Facts,
    *,
    min_share: Annotated[float, "change of other outputs over that of its own"] = 1e-4,
) -> Iterator[Verdict]:
    """The output for one sample depends on the other samples of its batch.

    ## What it does
    Uses the experiment `sample-mixing`: in eval mode the input of one sample is replaced by that of
    another; the outputs of the other samples must not change. `holter run` runs it after the script
    has ended. The finding is certain if the order of samples is arbitrary (the loader shuffles, or
    the sequence is along another dimension) and the first module that mixes runs over the wrong
    dimension (no `batch_first`, a softmax over dimension 0), likely if one of the two holds,
    otherwise a hint.

    ## Why it matters
    The prediction for a sample then changes with the batch size, the order and the last batch of an
    epoch. Information leaks between samples, and a single sample gets a different prediction than
    in a batch.

    ## Example
    ```python
    nn.LSTM(4, 32)                       # bad
    nn.LSTM(4, 32, batch_first=True)     # good
    ```

    ## What to do
    Look at the named module: a softmax, mean or norm over dimension 0; a `view` instead of a
    `transpose`; `nn.LSTM`, `nn.MultiheadAttention` or a transformer layer without
    `batch_first=True` on batch-first inputs.

    ## When it is wrong
    Models that deliberately relate the samples of a batch: attention between samples, graphs whose
    nodes are the samples, or experts with limited capacity.

    ## How to confirm
    - Call the model in eval mode on one sample alone and on a batch that holds it: the outputs must
      be equal.
    """
    trials = [
        trial
        for trial in (_Trial(facts, name) for name in facts.run[MIXING_OTHERS])
        if trial.own > trial.limit
    ]
    if not trials:
        yield mixed_samples.not_examined(
            "the output of a sample does not change when its input is replaced"
        )
        return
    worst = max(trials, key=lambda trial: (trial.largest, trial.own))
    if worst.largest <= max(worst.limit, min_share * worst.own):
        yield mixed_samples.clear(
            f"replacing one sample changes its own output by {worst.own:.2g} standard deviations"
            f" and none of the {len(worst.others)} others"
        )
        return
    module = _module(facts)
    yield mixed_samples.excused(facts, trials, module) or _finding(facts, worst, module)


def _is_shuffled(facts: Facts) -> bool:
    return MIXING_SHUFFLED in facts.run and bool(facts.run[MIXING_SHUFFLED][""].values[-1])


def _module(facts: Facts) -> MixingModule:
    """Return the first module that mixes, or one without a name if none was found."""
    if MIXING_MODULES in facts.run:
        module = min(
            facts.run[MIXING_MODULES], key=lambda name: facts.run[MIXING_MODULES][name].first
        )
        for event in facts.run.events_of(MixingModule):
            if event.what.module == module:
                return event.what
    return MixingModule("", "")


def _finding(facts: Facts, worst: _Trial, mixing: MixingModule) -> Verdict:
    module = mixing.module
    where = f"; first in {module} ({mixing.type})" if module else ""
    wrong_dimension = True
    if mixing.batch_first is False:
        fix = f"pass `batch_first=True` to {module}, or give it sequences with time first"
    elif mixing.dim == 0:
        fix = f"set `dim=-1` in {module}, so that it runs over the last dimension"
    else:
        wrong_dimension = False
        fix = f"find the operation in {module or 'the model'} that runs over the batch dimension"
    return mixed_samples.finding(
        f"replacing one sample of a batch changes the outputs of {worst.affected} of the"
        f" {len(worst.others)} others, by up to {worst.largest:.2g} standard deviations (its own:"
        f" {worst.own:.2g}){where}",
        confidence=Confidence(wrong_dimension + _is_shuffled(facts)),
        onset=0,
        evidence=(
            Evidence(
                MIXING_OTHERS,
                (worst.others.first, worst.others.last),
                f"up to {worst.largest:.2g} (rounding: {worst.limit:.1g})",
                worst.name,
            ),
            *_module_evidence(facts, module),
        ),
        fix=fix,
    )


def _module_evidence(facts: Facts, module: str) -> Iterator[Evidence]:
    if module:
        series = facts.run[MIXING_MODULES][module]
        yield Evidence(MIXING_MODULES, (series.first, series.last), "first that mixes", module)
