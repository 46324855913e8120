"""True labels are no easier to learn than shuffled ones."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.label_trials import TELLS, LabelTrials
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LABEL_FIT, LABEL_HELD_OUT, LABEL_SAMPLES
from holter.record.trials import TrialKind, TrialName

ONE_BATCH = str(TrialName(TrialKind.ONE_BATCH))
TRUE_LABELS = str(TrialName(TrialKind.TRUE_LABELS))


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LABEL_FIT, LABEL_HELD_OUT, LABEL_SAMPLES),
)
def unrelated_labels(
    facts: Facts,
    *,
    min_samples: Annotated[int, "held-out samples needed"] = 128,
    max_score: Annotated[float, "standard errors between true and shuffled labels"] = 1.5,
    clear_score: Annotated[float, "standard errors by which true labels are surely better"] = TELLS,
    max_loss_left: Annotated[float, "share of its loss left when one batch is memorised"] = 0.6,
) -> Iterator[Verdict]:
    """True labels are no easier to learn than shuffled ones.

    ## What it does
    Uses the experiment `label-control`: trainings from the same initial weights, with true labels
    and with labels shuffled within each batch. It reports if neither the held-out loss nor the
    training loss differs by more than noise, although the model can memorise one batch.

    ## Why it matters
    If labels do not belong to their inputs, a large model still memorises them: training looks
    fine, and nothing generalises to validation.

    ## Example
    ```python
    x = x[torch.randperm(len(x))]                    # bad
    order = torch.randperm(len(x)); x, y = x[order], y[order]  # good
    ```

    ## What to do
    Look at ten samples with their labels. Typical causes: files sorted in two different ways, a
    shuffle that moves inputs but not labels, an index that is off by one, a join on the wrong key.

    ## When it is wrong
    Tasks that need far more data or steps before anything generalises, such as parity, modular
    arithmetic or markets. Labels that are mostly noise.

    ## How to confirm
    - Print ten samples, as the loader delivers them, next to their labels.
    - Train a linear model on more data: is it better than the best constant prediction?
    """
    held = LabelTrials(facts.run, LABEL_HELD_OUT)
    fit = LabelTrials(facts.run, LABEL_FIT)
    samples = int(facts.run[LABEL_SAMPLES][""].values[-1])
    steps = len(facts.run[LABEL_FIT][TRUE_LABELS])
    measured = (
        f"after {steps} steps the held-out loss is {held.true:.3g} with true labels and"
        f" {held.shuffled:.3g} with shuffled ones"
    )
    if not np.isfinite([held.score, fit.score]).all():
        yield unrelated_labels.not_examined("a loss is not finite")
    elif max(held.score, fit.score) > clear_score:
        yield unrelated_labels.clear(measured)
    elif ONE_BATCH not in facts.run[LABEL_FIT]:
        yield unrelated_labels.not_examined(f"too few steps to tell: {measured}")
    elif samples < min_samples:
        yield unrelated_labels.not_examined(f"{samples} of the {min_samples} samples needed")
    elif max(held.score, fit.score) > max_score or min(held.score, fit.score) < -clear_score:
        yield unrelated_labels.not_examined(f"too small a difference to tell: {measured}")
    else:
        batch = facts.run[LABEL_FIT][ONE_BATCH].values
        if not batch[-1] <= max_loss_left * batch[0]:
            yield unrelated_labels.not_examined(
                f"the model does not memorise one batch in {len(batch)} steps: loss"
                f" {batch[0]:.3g} to {batch[-1]:.3g}"
            )
            return
        yield unrelated_labels.finding(
            f"true labels are no easier to learn than shuffled ones: {measured}; one batch alone is"
            f" memorised (loss {batch[0]:.3g} to {batch[-1]:.3g})",
            confidence=Confidence.HINT,
            onset=0,
            evidence=tuple(
                Evidence(
                    LABEL_HELD_OUT,
                    (0, len(series) - 1),
                    f"{float(series.values.mean()):.3g} on {samples} held-out samples",
                    trial,
                )
                for trial, series in facts.run[LABEL_HELD_OUT].items()
            ),
            fix="print ten samples next to their labels, and check that each label belongs to its"
            " input",
        )
