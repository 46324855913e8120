"""The output for one sample depends on the other samples of its batch."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
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


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(MIXING_OWN, MIXING_OTHERS, MIXING_ROUNDING),
)
def mixed_samples(facts: Facts, *, min_share: float = 1e-4) -> Iterator[Verdict]:
    """The output for one sample depends on the other samples of its batch.

    ## What it does
    Reads the experiment sample-mixing: in eval mode the input of one sample is replaced by that of
    another. The rule speaks where the outputs of samples that were left alone change by more than
    rounding and by more than `min_share` of what the replaced sample's own output changes. It is
    certain where the first module that mixes is known to run over the wrong dimension (recurrent
    layers and attention without `batch_first`, a softmax over dimension 0); likely where the loader
    shuffles, so that samples have nothing to do with each other; else a hint. Where the loader does
    not shuffle and only later samples change, they may be one sequence: that is noted as normal. So
    is batch norm without running statistics.

    ## Why it matters
    The prediction for a sample then changes with its company: with the batch size, the order, the
    last batch of an epoch. Information leaks between samples, validation does not tell what use
    will be like, and a model that is asked for one sample answers something else.

    ## What to do
    Look at the module that is named: a softmax, mean or norm over dimension 0; a `view` in place of
    a `transpose`; `nn.LSTM`, `nn.MultiheadAttention` or a transformer layer without
    `batch_first=True` that is given samples first.

    ## When it is wrong
    Models that relate the samples of a batch on purpose, such as attention between samples, graphs
    whose nodes are the samples, or experts with a capacity that samples compete for.

    ## How to confirm
    - Call the model in eval mode on one sample alone and on a batch that holds it: the outputs have
      to be equal.
    """
    trials = {name: _Trial(facts, name) for name in facts.run[MIXING_OTHERS]}
    told = [each for each in trials.values() if each.own > each.limit]
    if not told:
        yield mixed_samples.not_examined(
            "the output of a sample does not change when its input is replaced"
        )
        return
    worst = max(told, key=lambda each: (each.largest, each.own))
    if worst.largest <= max(worst.limit, min_share * worst.own):
        yield mixed_samples.clear(
            f"replacing one sample changes its own output by {worst.own:.2g} standard deviations,"
            f" and none of the {len(worst.others)} others"
        )
        return
    module = _module(facts)
    shuffled = MIXING_SHUFFLED in facts.run and bool(facts.run[MIXING_SHUFFLED][""].values[-1])
    if module.batch_norm:
        yield mixed_samples.normal(
            f"{module.module} is a batch norm without running statistics: it mixes samples in eval"
            " mode"
        )
    elif not shuffled and all(each.only_later for each in told):
        yield mixed_samples.normal(
            "outputs depend on samples that come before, and the loader does not shuffle: the"
            " samples of a batch seem to be a sequence"
        )
    else:
        yield _finding(facts, worst, module, shuffled)


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
        return int((self.others.values > self.limit).sum())

    @property
    def only_later(self) -> bool:
        """Whether no sample before the replaced one changes."""
        steps = self.others.steps
        own = int(np.setdiff1d(np.arange(len(steps) + 1), steps)[0])
        return not bool((self.others.values[steps < own] > self.limit).any())


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


def _finding(facts: Facts, worst: _Trial, mixing: MixingModule, shuffled: bool) -> Verdict:
    module = mixing.module
    time_first = mixing.batch_first is False
    over_batch = mixing.dim == 0
    where = f"; first seen in {module} ({mixing.type})" if module else ""
    if time_first:
        fix = f"pass batch_first=True to {module}, or give it sequences with time first"
    elif over_batch:
        fix = f"let {module} run over the last dimension: dim=-1"
    else:
        place = module or "the model"
        fix = f"see which operation in {place} runs over the dimension of samples"
    known = time_first or over_batch
    certain = Confidence.CERTAIN if known and shuffled else Confidence.LIKELY
    window = worst.others.first, worst.others.last
    return mixed_samples.finding(
        f"replacing one sample of a batch changes the outputs of {worst.affected} of the"
        f" {len(worst.others)} others, by up to {worst.largest:.2g} standard deviations (its own:"
        f" {worst.own:.2g}){where}",
        confidence=certain if known or shuffled else Confidence.HINT,
        onset=0,
        evidence=(
            Evidence(
                MIXING_OTHERS,
                window,
                f"up to {worst.largest:.2g}, where rounding makes {worst.limit:.1g}",
                worst.name,
            ),
            *(
                (Evidence(MIXING_MODULES, _steps(facts, module), "the first that mixes", module),)
                if module
                else ()
            ),
        ),
        fix=fix,
    )


def _steps(facts: Facts, module: str) -> tuple[int, int]:
    series = facts.run[MIXING_MODULES][module]
    return series.first, series.last
