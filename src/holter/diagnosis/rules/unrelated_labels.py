"""True labels are no easier to learn than shuffled ones."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.label_trials import TELLS, LabelTrials
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LABEL_FIT, LABEL_HELD_OUT, LABEL_SAMPLES


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LABEL_FIT, LABEL_HELD_OUT, LABEL_SAMPLES),
)
def unrelated_labels(
    facts: Facts, *, max_score: float = 1.5, min_fit: float = 0.6, min_samples: int = 128
) -> Iterator[Verdict]:
    """True labels are no easier to learn than shuffled ones.

    ## What it does
    Reads the experiment label-control: trainings from one start, with true labels and with labels
    shuffled within each batch. The rule speaks where, after all its steps, neither the losses of
    `min_samples` or more held-out samples nor those of the training itself differ by more than
    `max_score` standard errors, while one batch alone could be learned to `min_fit` of its first
    loss or less. It is always a hint: a hard task looks like this as well.

    ## Why it matters
    If labels do not belong to their inputs, a large model still learns them by heart: training
    looks fine, and nothing carries over to validation.

    ## What to do
    Look at ten samples with their labels. Files sorted in two different ways, a shuffle that moves
    inputs but not labels, an index that is off by one, a join on the wrong key: all look like this.

    ## When it is wrong
    Tasks that need far more data or steps before anything carries over, such as parity, modular
    arithmetic or markets. Labels that are mostly noise.

    ## How to confirm
    - Print ten samples, as the loader delivers them, beside their labels.
    - Train a simple model, such as a linear one, on more data: is it better than a constant?
    """
    held = LabelTrials(facts.run, LABEL_HELD_OUT)
    fit = LabelTrials(facts.run, LABEL_FIT)
    samples = int(facts.run[LABEL_SAMPLES][""].values[-1])
    steps = len(facts.run[LABEL_FIT]["true"])
    said = (
        f"after {steps} steps other batches have a loss of {held.true:.3g}, and of"
        f" {held.shuffled:.3g} with shuffled labels"
    )
    if not np.isfinite([held.score, fit.score]).all():
        yield unrelated_labels.not_examined("a loss is not finite")
    elif max(held.score, fit.score) > TELLS:
        yield unrelated_labels.clear(said)
    elif "one batch" not in facts.run[LABEL_FIT]:
        yield unrelated_labels.not_examined(f"{steps} steps are too few to tell: {said}")
    elif samples < min_samples:
        yield unrelated_labels.not_examined(f"{samples} of the {min_samples} samples needed")
    elif max(abs(held.score), abs(fit.score)) > max_score:
        yield unrelated_labels.not_examined(f"{said}: too little to tell")
    else:
        alone = facts.run[LABEL_FIT]["one batch"].values
        left = float(alone[-1] / alone[0])
        if not left <= min_fit:
            yield unrelated_labels.not_examined(
                f"one batch alone is not learned in {len(alone)} steps"
            )
            return
        yield unrelated_labels.finding(
            f"true labels are learned no better than shuffled ones: {said}, while one batch alone"
            f" is learned from {alone[0]:.3g} to {left * alone[0]:.3g}",
            confidence=Confidence.HINT,
            onset=0,
            evidence=tuple(
                Evidence(
                    LABEL_HELD_OUT,
                    (0, len(series) - 1),
                    f"{float(series.values.mean()):.4g} on {samples} samples not trained on",
                    trial,
                )
                for trial, series in facts.run[LABEL_HELD_OUT].items()
            ),
            fix="look at ten samples beside their labels: is each label the one of its input?",
        )
