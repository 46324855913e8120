"""All units of a layer have the same weights and stay identical."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Sample
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NORM, WEIGHT_TWIN_FRACTION


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(WEIGHT_TWIN_FRACTION, GRAD_NORM),
)
def identical_rows(
    facts: Facts,
    *,
    min_steps: Annotated[int, "last sampled steps at which the rows are identical"] = 10,
    share: Annotated[float, "share of the rows that equal the first"] = 0.999,
    min_layers: Annotated[int, "hidden layers that start so, where rounding parts them later"] = 2,
) -> Iterator[Verdict]:
    """All units of a layer have the same weights and stay identical.

    ## What it does
    Reports weight matrices whose rows are bitwise identical after the last updates. The last matrix
    of the model, embeddings, and weights that are frozen or get no gradient are excluded. If
    several layers start with identical rows that later differ only by rounding or dropout, it
    reports them if the training failed.

    ## Why it matters
    Units with identical weights compute the same output, get the same gradient, and stay identical.
    A layer with 512 such units has the capacity of one unit.

    ## Example
    ```python
    nn.init.constant_(layer.weight, 0.1)      # bad
    nn.init.kaiming_normal_(layer.weight)     # good
    ```

    ## What to do
    Initialise weights at random (`nn.init.kaiming_normal_`, `nn.init.xavier_uniform_`); only biases
    and the scales of normalisations may start as constants.

    ## When it is wrong
    Layers made of copies by design. A layer whose gradient is currently multiplied by zero keeps
    its initial constants.

    ## How to confirm
    - Print `(weight == weight[:1]).all()` of the named layer after some steps.
    - Initialise the layer at random and compare the first 100 losses.
    """
    names = [layer.name for layer in facts.layers]
    twins = facts.sample(WEIGHT_TWIN_FRACTION, names)
    recent = twins.values[-min_steps:]
    if len(recent) < min_steps:
        yield identical_rows.not_examined(f"{len(recent)} of the {min_steps} samples needed")
        return
    identical = np.flatnonzero((recent >= share).all(axis=0))
    reached = {owner for owner, norm in facts.run[GRAD_NORM].items() if len(norm)}
    candidates = [twins.owners[column] for column in identical]
    hidden = [name for name in candidates if name in reached and name != names[-1]]
    started = _started(twins, share, names[-1])
    if not hidden and len(started) >= min_layers:
        yield _from_the_start(facts, twins, started)
        return
    if not hidden:
        most = float(np.nanmax(np.where(np.isfinite(recent), recent, 0)[-1], initial=0))
        yield identical_rows.clear(
            "no hidden layer that is trained has identical rows only"
            + (f" (at most {percent(most)})" if most else "")
        )
        return
    column = twins.values[:, twins.owners.index(hidden[0])]
    different = np.flatnonzero(~(column >= share))
    first = int(twins.steps[different[-1] + 1 if len(different) else 0])
    yield identical_rows.finding(
        f"all rows of {some(hidden)} are identical since step {first}, after every update",
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
        fix="initialise these weights at random: `nn.init.kaiming_normal_(layer.weight)`",
    )


def _started(twins: Sample, share: float, last: str) -> list[str]:
    """Return the hidden layers whose rows were identical when they were first read."""
    columns = np.flatnonzero(twins.values[0] >= share)
    return [twins.owners[column] for column in columns if twins.owners[column] != last]


def _from_the_start(facts: Facts, twins: Sample, layers: list[str]) -> Verdict:
    measured = f"all rows of {some(layers)} start identical"
    damage = damage_of(identical_rows, facts, measured)
    if not isinstance(damage, Damage):
        return damage
    first = int(twins.steps[0])
    return identical_rows.finding(
        f"{measured}: their units differ by rounding or dropout only; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=first,
        evidence=(
            Evidence(
                WEIGHT_TWIN_FRACTION,
                (first, first),
                f"100 % of the rows equal the first at step {first}",
                layers[0],
            ),
            *damage.evidence,
        ),
        fix="initialise these weights at random: `nn.init.kaiming_normal_(layer.weight)`",
    )
