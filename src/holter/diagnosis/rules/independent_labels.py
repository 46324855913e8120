"""Nothing was learned, and training targets are independent of their inputs."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import series, why_absent
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_DEPENDENCE, LOSS

_CARRIES_NOTHING = (OutcomeState.LEARNED_NOTHING, OutcomeState.MEMORISED)


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def independent_labels(
    facts: Facts,
    *,
    margin: Annotated[float, "factor by which permuted targets must be exceeded"] = 1.0,
) -> Iterator[Verdict]:
    """Nothing was learned, and training targets are independent of their inputs.

    ## What it does
    Predicts the target of each training sample from its nearest neighbours and from the best single
    column, and does the same with permuted targets. It reports if neither beats permuted targets
    and the model learned nothing, or only memorised the training samples.

    ## Why it matters
    Labels that do not belong to their inputs cannot be learned by any model.

    ## Example
    ```python
    rng.shuffle(images); rng.shuffle(labels)                                  # bad
    order = rng.permutation(len(images)); images, labels = images[order], labels[order]   # good
    ```

    ## What to do
    Look at ten samples with their labels. Typical causes: inputs and labels shuffled or sorted
    separately, an index that is off by one, a join on the wrong key.

    ## When it is wrong
    Relations that neither neighbours nor single columns show, such as parity or modular arithmetic,
    in a training that failed for another reason.

    ## How to confirm
    - Print ten samples, as the loader delivers them, next to their labels.
    - `holter try label-control SCRIPT`: are true labels easier to learn than shuffled ones?
    """
    found = series(facts.run, DATASET_DEPENDENCE, "train")
    if found is None:
        why = why_absent(facts.run, DATASET_DEPENDENCE, "the data sets were not examined")
        yield independent_labels.not_examined(why)
        return
    near, near_permuted, column, column_permuted = (float(value) for value in found.values)
    measured = (
        f"the nearest samples predict {portion(max(near, 0.0))} of the variance of the targets"
        f" (permuted targets: up to {percent(max(near_permuted, 0.0))}), the best single column"
        f" {percent(column)} (permuted: up to {percent(column_permuted)})"
    )
    if near > margin * near_permuted or column > margin * column_permuted:
        yield independent_labels.clear(measured)
        return
    if facts.run_outcome.state not in _CARRIES_NOTHING:
        yield independent_labels.harmless(f"{measured}, but {facts.run_outcome.says}")
        return
    yield independent_labels.finding(
        measured,
        confidence=Confidence.HINT,
        onset=0,
        evidence=(Evidence(DATASET_DEPENDENCE, (0, 3), measured, "train"),),
        fix="print ten samples next to their labels, and check that each label belongs to its"
        " input",
    )
