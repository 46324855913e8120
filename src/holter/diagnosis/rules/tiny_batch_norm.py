"""Batch norm computes its statistics from a handful of values."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.validation import mean_loss
from holter.diagnosis.facts.windows import recent
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATA_BATCH_SIZE, DATA_BATCHES, NORMALISATION_SAMPLES, VAL_LOSS

_WINDOW = 2000  # last steps that are read


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(NORMALISATION_SAMPLES,),
)
def tiny_batch_norm(
    facts: Facts,
    *,
    max_values: Annotated[int, "values per channel that are too few"] = 4,
    min_samples: Annotated[int, "sampled steps needed"] = 5,
    min_gap: Annotated[float, "validation above training loss that is likely"] = 0.5,
    few_samples: Annotated[int, "batch size that is small at any resolution"] = 2,
    few_positions: Annotated[int, "values per channel that are few for such batches"] = 64,
) -> Iterator[Verdict]:
    """Batch norm computes its statistics from a handful of values.

    ## What it does
    Counts the values per channel (batch size times positions) from which batch norm computes mean
    and variance in training. The finding is likely if validation, which uses running statistics, is
    far worse than training from the first pass on. Batches of two samples with more values are a
    hint if validation is far from training in either direction.

    ## Why it matters
    Mean and variance of two or four values are mostly noise. In training each sample is normalised
    with the few others in its batch, in evaluation with running averages of different values: the
    evaluated model differs from the trained one.

    ## Example
    ```python
    DataLoader(data, batch_size=2); nn.BatchNorm1d(64)     # bad
    DataLoader(data, batch_size=2); nn.GroupNorm(8, 64)    # good
    ```

    ## What to do
    Use group norm or layer norm, a larger batch, or synchronised batch norm over the processes.
    Gradient accumulation does not help: each micro-batch is normalised separately.

    ## When it is wrong
    Modules whose input hardly varies across samples. Batch norm that is intended as a source of
    noise.

    ## How to confirm
    - Compute the loss of one batch in `train()` and in `eval()` mode: they should be close.
    - Double the batch size and halve the steps: validation should come closer to training.
    """
    rows = recent(facts, NORMALISATION_SAMPLES, _WINDOW)
    enough = rows.present.sum(axis=0) >= min_samples
    if not enough.any():
        yield tiny_batch_norm.not_examined(
            f"{len(rows.steps)} of the {min_samples} sampled steps needed"
        )
        return
    values = np.where(rows.present, rows.values, np.nan)[:, enough]
    owners = [rows.owners[column] for column in np.flatnonzero(enough)]
    median = np.nanmedian(values, axis=0)
    tiny = median <= max_values
    smallest = int(median.argmin())
    measured = f"{median[smallest]:.0f} values per channel"
    gap = _gap(facts)
    if not tiny.any() and _batch_size(facts) <= few_samples and median[smallest] <= few_positions:
        tiny |= gap is not None and not 1 / (1 + min_gap) < 1 + gap < 1 + min_gap
    if not tiny.any():
        yield tiny_batch_norm.clear(f"{owners[smallest]} normalises over {measured}")
        return
    names = [owners[column] for column in np.flatnonzero(tiny)]
    is_worse = gap is not None and gap > min_gap
    yield tiny_batch_norm.finding(
        f"batch norm computes its statistics from {measured}: {some(names)}"
        + (f"; the validation loss is {gap:.0%} above training from the start" if is_worse else ""),
        confidence=Confidence.LIKELY if is_worse else Confidence.HINT,
        onset=int(rows.steps[0]),
        evidence=(
            Evidence(
                NORMALISATION_SAMPLES,
                (int(rows.steps[0]), int(rows.steps[-1])),
                f"median {measured}",
                owners[smallest],
            ),
            *_validation_evidence(facts, gap),
        ),
        fix="use `nn.GroupNorm` or `nn.LayerNorm`, or a larger batch",
    )


def _gap(facts: Facts) -> float | None:
    """Return how far validation is above the training loss just before it, or None.

    It is the median over the passes, or that of the first pass if smaller.
    """
    loss = facts.falling_loss
    evaluation = facts.evaluation
    if loss is None or isinstance(evaluation, str):
        return None
    mean = mean_loss(facts, evaluation.function, loss)
    if isinstance(mean, str):
        return None
    loss, passes = mean, evaluation.losses
    gaps = []
    edges = np.concatenate([[-1], passes.steps])
    for begin, end, value in zip(edges[:-1], edges[1:], passes.values, strict=True):
        training = loss.values[(loss.steps > begin) & (loss.steps <= end)]
        training = training[-max(len(training) // 4, 1) :]
        if len(training) and np.isfinite(value) and training.mean() > 0:
            gaps.append(float(value / training.mean() - 1))
    return min(gaps[0], float(np.median(gaps))) if gaps else None


def _batch_size(facts: Facts) -> float:
    """Return the median batch size of the training loader, or infinity if it was not read."""
    if DATA_BATCH_SIZE not in facts.run or DATA_BATCHES not in facts.run:
        return np.inf
    size = max(facts.run[DATA_BATCH_SIZE].values(), key=len)
    count = max(facts.run[DATA_BATCHES].values(), key=len)
    if not len(size) or not len(count):
        return np.inf
    return float(np.median(size.values)) / max(float(np.median(count.values)), 1.0)


def _validation_evidence(facts: Facts, gap: float | None) -> Iterator[Evidence]:
    evaluation = facts.evaluation
    if gap is not None and not isinstance(evaluation, str):
        says = f"{1 + gap:.2g} times the training loss"
        yield Evidence(VAL_LOSS, (0, facts.run.steps - 1), says, evaluation.owner)
