"""Batch norm takes its statistics from a handful of values."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATA_BATCH_SIZE, DATA_BATCHES, NORMALISATION_SAMPLES, VAL_LOSS

_FEW_SAMPLES = 2  # of a batch, that share most of what they are normalised by
_FEW_POSITIONS = 64  # values per channel of so few samples that are much alike
_READ = 2000  # steps, back from the last, that are looked at


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(NORMALISATION_SAMPLES,),
)
def tiny_batch_norm(
    facts: Facts, *, max_values: int = 4, min_samples: int = 5, min_gap: float = 0.5
) -> Iterator[Verdict]:
    """Batch norm takes its statistics from a handful of values.

    ## What it does
    Looks at how many values per channel the batch-norm modules took mean and variance from in
    training: batch size times positions. It speaks where the median over at least `min_samples`
    sampled steps is `max_values` or fewer. It is likely a fault if validation, which uses running
    statistics, is worse than training by `min_gap` of it from the first validation on. Batches of
    two samples with up to 64 values per channel are a hint where validation is that far from
    training, in either direction.

    ## Why it matters
    Mean and variance of two or four values are mostly noise. In training each sample is normalised
    by its few neighbours; in evaluation by running averages that never looked like them. The model
    that is evaluated is not the model that was trained.

    ## What to do
    Take group norm or layer norm, a larger batch, or synchronised batch norm over the processes.
    Accumulating gradients does not help: each micro-batch is normalised by itself.

    ## When it is wrong
    Modules whose input hardly varies across samples. Batch norm on purpose as a source of noise.

    ## How to confirm
    - Compute the loss of one batch in `train()` and in `eval()` mode: they should be close.
    - Double the batch size and halve the steps: validation should come closer to training.
    """
    rows = facts.run[NORMALISATION_SAMPLES].rows(facts.run.steps - _READ)
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
    least = int(median.argmin())
    measured = f"{owners[least]} takes its statistics from {median[least]:.0f} values per channel"
    gap = _gap(facts)
    if not tiny.any() and _samples(facts) <= _FEW_SAMPLES and median[least] <= _FEW_POSITIONS:
        tiny |= gap is not None and not 1 / (1 + min_gap) < 1 + gap < 1 + min_gap
    if not tiny.any():
        yield tiny_batch_norm.clear(measured)
        return
    names = [owners[column] for column in np.flatnonzero(tiny)]
    worse = gap is not None and gap > min_gap
    yield tiny_batch_norm.finding(
        f"{some(names)}: batch norm over {median[least]:.0f} values per channel"
        + (f"; validation is worse than training by {gap:.0%} from the start" if worse else ""),
        confidence=Confidence.LIKELY if worse else Confidence.HINT,
        onset=int(rows.steps[0]),
        evidence=(
            Evidence(
                NORMALISATION_SAMPLES,
                (int(rows.steps[0]), int(rows.steps[-1])),
                f"median {median[least]:.0f} values per channel",
                owners[least],
            ),
            *_validation(facts, gap),
        ),
        fix="use group norm or layer norm, or a larger batch",
    )


def _gap(facts: Facts) -> float | None:
    """How much worse validation is than training at most of the validations, the first included."""
    loss = facts.falling_loss
    series = (
        [each for each in facts.run[VAL_LOSS].values() if len(each)]
        if VAL_LOSS in facts.run
        else []
    )
    if loss is None or len(series) != 1 or not len(series[0]):
        return None
    gaps = []
    edges = np.concatenate([[-1], series[0].steps])
    for begin, end, value in zip(edges[:-1], edges[1:], series[0].values, strict=True):
        near = loss.values[(loss.steps > begin) & (loss.steps <= end)]
        near = near[-max(len(near) // 4, 1) :]
        if len(near) and np.isfinite(value) and near.mean() > 0:
            gaps.append(float(value / near.mean() - 1))
    return min(gaps[0], float(np.median(gaps))) if gaps else None


def _samples(facts: Facts) -> float:
    """Samples of a usual batch of the training loader; infinitely many where it is not known."""
    if DATA_BATCH_SIZE not in facts.run or DATA_BATCHES not in facts.run:
        return np.inf
    size = max(facts.run[DATA_BATCH_SIZE].values(), key=len)
    count = max(facts.run[DATA_BATCHES].values(), key=len)
    if not len(size) or not len(count):
        return np.inf
    return float(np.median(size.values)) / max(float(np.median(count.values)), 1.0)


def _validation(facts: Facts, gap: float | None) -> Iterator[Evidence]:
    if gap is not None:
        says = f"validation is at {1 + gap:.2g} times the loss of training"
        yield Evidence(VAL_LOSS, (0, facts.run.steps - 1), says, next(iter(facts.run[VAL_LOSS])))
