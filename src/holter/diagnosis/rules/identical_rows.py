"""All units of a layer have the same weights and stay copies of one another."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NORM, WEIGHT_TWIN_FRACTION

_ALL = 0.999  # share of the rows that counts as all of them


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(WEIGHT_TWIN_FRACTION, GRAD_NORM),
)
def identical_rows(facts: Facts, *, min_steps: int = 10) -> Iterator[Verdict]:
    """All units of a layer have the same weights and stay copies of one another.

    ## What it does
    Looks for weight matrices of which all rows are equal bit for bit after the update, at the last
    `min_steps` sampled steps or more. The last matrix of the model does not count, nor do
    embeddings, weights that are frozen or get no gradient, and layers that begin equal and part.

    ## Why it matters
    Units with equal weights compute the same, get the same gradient, and stay equal for ever. A
    layer of 512 such units is a layer of one.

    ## What to do
    Initialise weights at random (`nn.init.kaiming_normal_`, `nn.init.xavier_uniform_`); only biases
    and the scales of normalisations may begin as constants.

    ## When it is wrong
    Layers that are made of copies on purpose. A layer whose gradient is multiplied by zero for now
    keeps the constants it was given.

    ## How to confirm
    - Print `(weight == weight[:1]).all()` of the named layer after some steps.
    - Initialise the layer at random and compare the first 100 losses.
    """
    names = [each.name for each in facts.layers]
    twins = facts.sample(WEIGHT_TWIN_FRACTION, names)
    recent = twins.values[-min_steps:]
    if len(recent) < min_steps:
        yield identical_rows.not_examined(f"{len(recent)} of the {min_steps} samples needed")
        return
    equal = np.flatnonzero((recent >= _ALL).all(axis=0))
    reached = {owner for owner, each in facts.run[GRAD_NORM].items() if len(each)}
    alike = [twins.owners[column] for column in equal]
    hidden = [name for name in alike if name in reached and name != names[-1]]
    if not hidden:
        most = float(np.nanmax(np.where(np.isfinite(recent), recent, 0)[-1], initial=0))
        yield identical_rows.clear(
            f"in no hidden layer that is trained are all rows equal (at most {most:.0%} of one)"
        )
        return
    column = twins.values[:, twins.owners.index(hidden[0])]
    streak = np.flatnonzero(~(column >= _ALL))
    first = int(twins.steps[streak[-1] + 1 if len(streak) else 0])
    yield identical_rows.finding(
        f"all rows of {some(hidden)} are equal bit for bit since step {first}, after every update:"
        " each layer is a single unit, copied",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                WEIGHT_TWIN_FRACTION,
                (first, int(twins.steps[-1])),
                f"100 % of the rows equal the first at the last {len(recent)} samples",
                hidden[0],
            ),
        ),
        fix="initialise these weights at random, for example with nn.init.kaiming_normal_",
    )
