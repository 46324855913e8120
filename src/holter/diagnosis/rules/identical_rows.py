"""All units of a layer have the same weights, or nearly the same."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Sample
from holter.diagnosis.facts.weight_growth import fan_ins, initial_size
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NORM, WEIGHT_ROW_COHERENCE, WEIGHT_TWIN_FRACTION

_FEWEST = 3  # samples of the coherence that tell how it goes on
_FIX = "initialise these weights at random: `nn.init.kaiming_normal_(layer.weight)`"


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
    nearly: Annotated[float, "share of the weights' energy in the mean row initially"] = 0.99,
    still: Annotated[float, "the same at the end, of rows that are still near-identical"] = 0.5,
    diverse: Annotated[float, "RMS x sqrt(fan-in) of what differs that makes rows diverse"] = 0.3,
) -> Iterator[Verdict]:
    """All units of a layer have the same weights, or nearly the same.

    ## What it does
    Reports weight matrices whose rows are bitwise identical after the last updates, or that start
    near-identical and still share most of their energy at the end. The last matrix of the model,
    embeddings, and weights that are frozen or get no gradient are excluded. Rows of several layers
    that only start identical are reported if the training failed.

    ## Why it matters
    Units with identical weights compute the same output, get the same gradient, and stay identical.
    Dropout and rounding separate them, but far more slowly than training needs. A layer with 512
    such units has the capacity of one unit.

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
    - Print `(weight - weight.mean(0)).norm() / weight.norm()` of the named layer before training:
      0 if all rows are equal, nearly 1 if they are random.
    - Initialise the layer at random and compare the first 100 losses.
    """
    names = [layer.name for layer in facts.layers]
    reached = {owner for owner, norm in facts.run[GRAD_NORM].items() if len(norm)}
    inner = [name for name in names[:-1] if name in reached]
    twins = facts.sample(WEIGHT_TWIN_FRACTION, names)
    recent = twins.values[-min_steps:]
    enough = len(recent) >= min_steps
    hidden = [name for name in _columns(twins, recent >= share) if name in inner] if enough else []
    near = _near_identical(facts, inner, nearly, diverse)
    alike = [] if near is None else _columns(near, near.between(0.75, 1).values >= still)
    if hidden:
        yield _identical(twins, hidden, share, len(recent))
        return
    if near is not None and alike and len(near) >= _FEWEST:
        yield _near(facts, near, alike, min_layers)
        return
    if not enough:
        yield identical_rows.not_examined(f"{len(recent)} of the {min_steps} samples needed")
        return
    started = {name for name in _columns(twins, twins.values[:1] >= share) if name != names[-1]}
    started.update(near.owners if near is not None else ())
    if len(started) >= min_layers:
        layers = [name for name in names if name in started]
        yield _from_the_start(facts, twins, near, layers)
        return
    most = float(np.nanmax(np.where(np.isfinite(recent), recent, 0)[-1], initial=0))
    yield identical_rows.clear(
        "no hidden layer that is trained has identical rows only"
        + (f" (at most {percent(most)})" if most else "")
    )


def _columns(sample: Sample, holds: np.ndarray) -> list[str]:
    """Return the owners for which a condition holds at all steps."""
    return [sample.owners[column] for column in np.flatnonzero(holds.all(axis=0))]


def _identical(twins: Sample, hidden: list[str], share: float, samples: int) -> Verdict:
    column = twins.values[:, twins.owners.index(hidden[0])]
    different = np.flatnonzero(~(column >= share))
    first = int(twins.steps[different[-1] + 1 if len(different) else 0])
    return identical_rows.finding(
        f"all rows of {some(hidden)} are identical since step {first}, after every update",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                WEIGHT_TWIN_FRACTION,
                (first, int(twins.steps[-1])),
                f"100 % of the rows equal the first at the last {samples} samples",
                hidden[0],
            ),
        ),
        fix=_FIX,
    )


def _near_identical(facts: Facts, names: list[str], nearly: float, diverse: float) -> Sample | None:
    """Return the coherence of rows that start near-identical, or None without such a layer.

    Rows that share a large part may differ by as much as rows drawn at random do: they are left
    out. So are weights that no layer of torch applies: tables of one constant may be meant so.
    """
    if WEIGHT_ROW_COHERENCE not in facts.run:
        return None
    fans = fan_ins(facts)
    coherence = facts.sample(WEIGHT_ROW_COHERENCE, [name for name in names if name in fans])
    if not len(coherence):
        return None
    layers = {layer.name: layer for layer in facts.layers}
    chosen = []
    for column, name in enumerate(coherence.owners):
        first, size = float(coherence.values[0, column]), initial_size(facts, layers[name])
        apart = np.sqrt(max(1 - first, 0)) * (size or 0.0)  # NaN of a weight that starts at zero
        if first >= nearly and apart < diverse:
            chosen.append(column)
    if not chosen:
        return None
    owners = tuple(coherence.owners[column] for column in chosen)
    return Sample(coherence.steps, owners, coherence.values[:, chosen])


def _near(facts: Facts, near: Sample, layers: list[str], min_layers: int) -> Verdict:
    columns = [near.owners.index(name) for name in layers]
    first, last = (float(near.values[at, columns].min()) for at in (0, -1))
    measured = (
        f"all rows of {some(layers)} start near-identical and stay so: their mean row holds"
        f" {percent(first)} of their energy initially and at least {percent(last)} at the end"
    )
    outcome = facts.outcome
    is_bad = outcome is not None and outcome.bad
    return identical_rows.finding(
        measured + (f"; {outcome.says}" if outcome is not None else ""),
        confidence=Confidence.LIKELY if is_bad or len(layers) >= min_layers else Confidence.HINT,
        severity=None if is_bad else Severity.WARNING,
        onset=int(near.steps[0]),
        evidence=(
            Evidence(
                WEIGHT_ROW_COHERENCE,
                (int(near.steps[0]), int(near.steps[-1])),
                f"{near.values[0, columns[0]]:.3g} initially, {near.values[-1, columns[0]]:.3g} at"
                " the end; rows drawn at random have about 1 over their number",
                layers[0],
            ),
            *((outcome.evidence,) if outcome is not None and is_bad else ()),
        ),
        fix=_FIX,
    )


def _from_the_start(facts: Facts, twins: Sample, near: Sample | None, layers: list[str]) -> Verdict:
    measured = f"all rows of {some(layers)} start identical"
    damage = damage_of(identical_rows, facts, measured)
    if not isinstance(damage, Damage):
        return damage
    signal, sample = (WEIGHT_TWIN_FRACTION, twins) if near is None else (WEIGHT_ROW_COHERENCE, near)
    first, owner = int(sample.steps[0]), next(name for name in layers if name in sample.owners)
    value = float(sample.values[0, sample.owners.index(owner)])
    return identical_rows.finding(
        f"{measured}: their units differ by rounding or dropout only; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=first,
        evidence=(
            Evidence(
                signal,
                (first, first),
                f"{percent(value)} of the rows equal the first at step {first}"
                if near is None
                else f"the mean row holds {percent(value)} of the energy at step {first}",
                owner,
            ),
            *damage.evidence,
        ),
        fix=_FIX,
    )
