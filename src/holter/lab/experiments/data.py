"""Read the data sets of a training sample by sample."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from holter.lab.batches import tensors
from holter.lab.calls import LossEvaluation, first_loss_call
from holter.lab.experiments import experiment
from holter.lab.experiments._samples import columns
from holter.lab.experiments._samples.datasets import Split, read
from holter.lab.experiments._samples.neighbours import near_pairs
from holter.lab.experiments._samples.overlaps import duplicates, overlap, shared_positions
from holter.lab.experiments._samples.windows import overlapping_windows
from holter.lab.experiments._samples.writing import (
    KEYS,
    MAKING,
    SKEW,
    absent,
    write_dependence,
    write_making,
    write_relations,
    write_skew,
    write_transfer,
)
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.writing import Lab
from holter.record.events import SamplesFound, SampleShown
from holter.record.signals import (
    DATASET_ABSMAX,
    DATASET_CLASS,
    DATASET_CLASS_COUNT,
    DATASET_CLASS_WEIGHTS,
    DATASET_COLUMN_CONSTANT,
    DATASET_COLUMN_COPY,
    DATASET_COLUMN_INFORMATION,
    DATASET_COLUMN_ORDER,
    DATASET_COLUMN_PLACEHOLDER,
    DATASET_COLUMN_RESIDUE,
    DATASET_COLUMN_TRANSFER,
    DATASET_COLUMN_VALUES,
    DATASET_COLUMN_ZEROS,
    DATASET_CONFLICTS,
    DATASET_DIMENSIONS,
    DATASET_DISTINCT,
    DATASET_DUPLICATES,
    DATASET_EXAMINED,
    DATASET_LABEL_CHANGES,
    DATASET_LENGTH,
    DATASET_MEAN,
    DATASET_NEAR_OVERLAP,
    DATASET_NONFINITE,
    DATASET_NONFINITE_LOSS,
    DATASET_OUT_OF_RANGE,
    DATASET_OUTPUTS,
    DATASET_OVERLAP,
    DATASET_PAIR_ORDER,
    DATASET_REPEATED,
    DATASET_SHARED_POSITIONS,
    DATASET_STD,
    DATASET_VALUES,
    DATASET_WINDOW_OVERLAP,
)

_NAMED = 8  # indices of samples that are written down for each thing
_CLASSES = 1000  # more are no classes

_COLUMNS = (
    *(DATASET_COLUMN_VALUES, DATASET_COLUMN_CONSTANT, DATASET_COLUMN_ZEROS),
    DATASET_COLUMN_PLACEHOLDER,
)
_PREDICTION = (
    *(DATASET_COLUMN_RESIDUE, DATASET_COLUMN_ORDER, DATASET_COLUMN_COPY),
    *(DATASET_COLUMN_INFORMATION, DATASET_PAIR_ORDER),
)
_CLASS = (DATASET_CLASS, DATASET_CLASS_COUNT, DATASET_LABEL_CHANGES)
_COPIES = (DATASET_DUPLICATES, DATASET_REPEATED, DATASET_DISTINCT, DATASET_CONFLICTS)
_RANGE = (DATASET_OUTPUTS, DATASET_OUT_OF_RANGE)
_EQUAL = (DATASET_OVERLAP, DATASET_SHARED_POSITIONS, DATASET_NEAR_OVERLAP, DATASET_WINDOW_OVERLAP)
_BOTH = (*SKEW, *_EQUAL, *KEYS, DATASET_COLUMN_TRANSFER)

_CHANGED = "labels are changed between the data set and the batch, or are not its last part"


@experiment(
    emits=(
        *(DATASET_LENGTH, DATASET_EXAMINED, DATASET_VALUES, DATASET_DIMENSIONS),
        *(DATASET_MEAN, DATASET_STD, DATASET_ABSMAX, DATASET_CLASS_WEIGHTS),
        *(DATASET_NONFINITE, DATASET_NONFINITE_LOSS),
        *_COPIES,
        *_CLASS,
        *_RANGE,
        *_COLUMNS,
        *_PREDICTION,
        *MAKING,
        *_BOTH,
    ),
    preflight=True,
)
def data(
    setup: Setup, lab: Lab, *, samples: int = 2000, seconds: float = 2.0, shown: int = 0
) -> None:
    """What is in the data sets, and do training and validation share samples?

    Reads random samples of both as the loaders would: duplicates, classes, values that are not
    finite, and how much single columns of a table reveal of the target.

    `samples`: maximum number of samples per split.
    `seconds`: time limit per split.
    `shown`: number of samples of each split to store as text and to show; none unless asked for.
    """
    loss = _loss_call(setup)
    ignored = int(loss.call.arguments["ignore_index"]) if loss is not None else None
    train = read(setup, "train", samples=samples, seconds=seconds, ignored=ignored)
    _one(setup, lab, train, loss, shown)
    try:
        valid = read(setup, "valid", samples=samples, seconds=seconds, ignored=ignored)
    except InapplicableError as reason:
        absent(lab, _BOTH, str(reason))
        return
    _one(setup, lab, valid, loss, shown)
    _both(lab, train, valid)


def compare_rows(setup: Setup, lab: Lab, *, samples: int, seconds: float) -> None:
    """Compare samples that were kept of both splits, each of them once.

    How often a sample occurs is not known: equal inputs are compared only if they have so many
    values that equality is no coincidence.
    """
    train = read(setup, "train", samples=samples, seconds=seconds)
    write_dependence(lab, train, None)
    _table(lab, train)
    valid = read(setup, "valid", samples=samples, seconds=seconds)
    for split in (train, valid):
        _sizes(lab, split)
    _table(lab, valid)
    write_skew(lab, train, valid)
    write_transfer(lab, train, valid)
    if all(_is_continuous(split) for split in (train, valid)):
        for split in (train, valid):
            _copies(lab, split)
        _overlaps(lab, train, valid)
    write_relations(lab, train, valid)


def _is_continuous(split: Split) -> bool:
    """Whether inputs are floating-point numbers of which hardly two are equal."""
    probes = [sample.probe for sample in split.samples if sample.probe is not None]
    if len(probes) < len(split.samples):
        return False
    return len(np.unique(np.concatenate(probes))) >= len(probes)


@dataclass(frozen=True, slots=True)
class _Loss:
    call: LossEvaluation
    own: bool  # its targets are a part of the batch, as they are


def _loss_call(setup: Setup) -> _Loss | None:
    """How the first batch calls a loss function of classes, if it does."""
    try:
        batches = setup.batches(1)
        call = first_loss_call(setup, batches[0]) if batches else None
    except Exception:  # whether the step works at all is for other experiments to tell
        return None
    if call is None or call.function not in ("cross_entropy", "nll_loss"):
        return None
    target, scores = call.arguments["target"], call.arguments["input"]
    if not isinstance(target, Tensor) or target.is_floating_point() or scores.dim() < 2:
        return None
    return _Loss(call, setup.roles is not None or _holds(batches[0], target))


def _holds(batch: Batch, target: Tensor) -> bool:
    held = target.detach().cpu()
    return any(
        tensor.shape == held.shape
        and not tensor.is_floating_point()
        and torch.equal(tensor.cpu().long(), held.long())
        for tensor in tensors(batch)
    )


def _one(setup: Setup, lab: Lab, split: Split, loss: _Loss | None, shown: int) -> None:
    for sample in split.samples[:shown]:
        inputs, targets = sample.shown
        lab.event(SampleShown(split.name, sample.index, inputs=inputs, targets=targets))
    _sizes(lab, split)
    _copies(lab, split)
    _finite(setup, lab, split)
    _classes(lab, split)
    if split.name == "train" and loss is not None:
        weighted = loss.call.arguments.get("weight") is not None
        lab.write(DATASET_CLASS_WEIGHTS, [float(weighted)], trial="train")
    _range(lab, split, loss)
    _table(lab, split)
    write_making(setup, lab, split)
    ignored = None if loss is None else loss.call.arguments.get("ignore_index")
    write_dependence(lab, split, ignored)


def _sizes(lab: Lab, split: Split) -> None:
    lab.write(DATASET_LENGTH, [split.length], trial=split.name)
    lab.write(DATASET_EXAMINED, [len(split.samples)], trial=split.name)
    lab.write(
        DATASET_DIMENSIONS, [max(sample.dimensions for sample in split.samples)], trial=split.name
    )
    probes = [sample.probe for sample in split.samples if sample.probe is not None]
    if len(probes) == len(split.samples):
        lab.write(DATASET_VALUES, [len(np.unique(np.concatenate(probes)))], trial=split.name)
    count = sum(sample.moments[0] for sample in split.samples)
    if count:
        mean = sum(sample.moments[1] for sample in split.samples) / count
        square = sum(sample.moments[2] for sample in split.samples) / count
        lab.write(DATASET_MEAN, [mean], trial=split.name)
        lab.write(DATASET_STD, [max(square - mean**2, 0.0) ** 0.5], trial=split.name)
        largest = max(sample.moments[3] for sample in split.samples)
        lab.write(DATASET_ABSMAX, [largest], trial=split.name)


def _copies(lab: Lab, split: Split) -> None:
    counts, conflicts = duplicates(split)
    held = counts.total()
    if held < len(split.samples):
        kind = next(sample.kinds for sample in split.samples if sample.inputs is None)
        absent(lab, (*_COPIES, *_BOTH), f"inputs cannot be compared: {kind or 'nothing in them'}")
        return
    repeated = {inputs for inputs, count in counts.items() if count > 1}
    copies = sum(counts[each] for each in repeated)
    lab.write(DATASET_DISTINCT, [len(counts)], trial=split.name)
    lab.write(DATASET_DUPLICATES, [copies / held], trial=split.name)
    if split.served is None:  # batches may be drawn from the same samples again and again
        absent(lab, (DATASET_REPEATED, DATASET_CONFLICTS), "samples are known by batches only")
        return
    lab.write(DATASET_REPEATED, [len(repeated) / len(counts)], trial=split.name)
    if split.arrives:
        lab.write(DATASET_CONFLICTS, [sum(map(len, conflicts)) / held], trial=split.name)
    else:
        absent(lab, (DATASET_CONFLICTS,), _CHANGED)
    same: dict[bytes, list[int]] = {}
    for sample in split.samples:
        if sample.inputs in repeated:
            same.setdefault(sample.inputs, []).append(sample.index)
    _name(lab, "duplicates", split, [sorted(each)[:_NAMED] for each in [*same.values()][:_NAMED]])
    _name(lab, "conflicts", split, [sorted(conflict)[:_NAMED] for conflict in conflicts[:_NAMED]])


def _finite(setup: Setup, lab: Lab, split: Split) -> None:
    spoiled = False
    for place, part in enumerate(("inputs", "targets")):
        bad = sorted(sample.index for sample in split.samples if sample.nonfinite[place])
        lab.write(DATASET_NONFINITE, [len(bad)], trial=f"{split.name} {part}")
        _name(lab, f"nonfinite {part}", split, bad[:_NAMED])
        spoiled = spoiled or bool(bad)
    if spoiled and (lost := _is_lost(setup, split.name)) is not None:
        lab.write(DATASET_NONFINITE_LOSS, [float(lost)], trial=split.name)


def _is_lost(setup: Setup, split: str, *, seconds: float = 2.0) -> bool | None:
    """Whether a batch that is not finite gives a loss that is not; None if none was met."""
    until = time.perf_counter() + seconds
    for batch in (setup.train if split == "train" else setup.valid) or ():
        if any(
            tensor.is_floating_point() and not tensor.isfinite().all() for tensor in tensors(batch)
        ):
            with torch.no_grad():
                return not bool(setup.loss(batch).isfinite().all())
        if time.perf_counter() > until:
            break
    return None


def _classes(lab: Lab, split: Split) -> None:
    labels = {sample.index: sample.label for sample in split.samples if sample.label is not None}
    counts = _served_counts(split, labels)
    few = len(counts) <= min(max(len(labels) // 2, 1), _CLASSES)
    if not few or not labels or not all(sample.is_class for sample in split.samples):
        absent(lab, _CLASS, "targets are not single classes")
        return
    if not split.arrives:
        absent(lab, _CLASS, _CHANGED)
        return
    kinds = sorted(counts)
    lab.write(DATASET_CLASS, kinds, trial=split.name)
    lab.write(DATASET_CLASS_COUNT, [counts[kind] for kind in kinds], trial=split.name)
    if split.served is not None and split.served.in_order and len(kinds) > 1:
        order = np.asarray([labels[index] for index in sorted(labels)])
        shares = np.asarray([counts[kind] for kind in kinds]) / counts.total()
        expected = 1 - float((shares**2).sum())
        changes = float((order[1:] != order[:-1]).mean()) / expected
        lab.write(DATASET_LABEL_CHANGES, [changes], trial=split.name)


def _served_counts(split: Split, labels: dict[int, float]) -> Counter[float]:
    """How often each class is served: a sampler with weights serves some samples many times."""
    if split.served is None or isinstance(split.served.positions, range):
        return Counter(labels.values())
    return Counter(labels[position] for position in split.served.positions if position in labels)


def _range(lab: Lab, split: Split, loss: _Loss | None) -> None:
    if loss is None:
        absent(lab, _RANGE, "no loss of torch that takes classes is called")
    elif not loss.own or any(sample.extremes is None for sample in split.samples):
        absent(lab, _RANGE, "the loss is given other targets than the data set holds")
    elif not split.arrives:
        absent(lab, _RANGE, _CHANGED)
    else:
        outputs = loss.call.arguments["input"].shape[1]
        outside = sorted(
            sample.index
            for sample in split.samples
            if sample.extremes is not None
            and not 0 <= sample.extremes[0] <= sample.extremes[1] < outputs
        )
        lab.write(DATASET_OUTPUTS, [outputs], trial=split.name)
        lab.write(DATASET_OUT_OF_RANGE, [len(outside)], trial=split.name)
        _name(lab, "out of range", split, outside[:_NAMED])


def _table(lab: Lab, split: Split) -> None:
    table = columns.table(split)
    if table is None or table.rows.shape[1] < 2:
        absent(lab, (*_COLUMNS, *_PREDICTION), "inputs are not rows of a table of several columns")
        return
    distinct = columns.distinct(table.rows)
    constant = np.where(distinct == 1, table.rows[0], np.nan)  # no values of single samples
    lab.write(DATASET_COLUMN_VALUES, distinct.tolist(), trial=split.name)
    lab.write(DATASET_COLUMN_CONSTANT, constant.tolist(), trial=split.name)
    lab.write(DATASET_COLUMN_ZEROS, (table.rows == 0).mean(axis=0).tolist(), trial=split.name)
    fine = np.isfinite(table.rows).all(axis=1)
    if fine.any():
        apart = columns.placeholders(table.rows[fine]).tolist()
        lab.write(DATASET_COLUMN_PLACEHOLDER, apart, trial=split.name)
    if not split.arrives:
        absent(lab, _PREDICTION, _CHANGED)
        return
    if table.targets is None or len(np.unique(table.targets[fine])) < 2:
        absent(lab, _PREDICTION, "targets are not single numbers that differ")
        return
    rows, targets = table.rows[fine], table.targets[fine]
    if table.classes is None:
        lab.write(DATASET_COLUMN_RESIDUE, columns.residue(rows, targets).tolist(), trial=split.name)
    else:
        copies = columns.copies(rows, targets, table.classes)
        lab.write(DATASET_COLUMN_COPY, copies.tolist(), trial=split.name)
    told = columns.information(rows, targets, classes=table.classes is not None)
    lab.write(DATASET_COLUMN_INFORMATION, told.tolist(), trial=split.name)
    if table.classes is None or len(table.classes) == 2:
        lab.write(DATASET_COLUMN_ORDER, columns.order(rows, targets).tolist(), trial=split.name)
        pair = columns.best_pair(rows, targets)
        if pair is not None:
            lab.write(DATASET_PAIR_ORDER, [pair.order, pair.next_order], trial=split.name)
            lab.event(SamplesFound("columns", split.name, indices=pair.columns))


def _both(lab: Lab, train: Split, valid: Split) -> None:
    """Compare both splits, what takes longest last."""
    for trial, share in shared_positions(train, valid).items():
        lab.write(DATASET_SHARED_POSITIONS, [share], trial=trial)
    write_skew(lab, train, valid)
    write_transfer(lab, train, valid)
    _overlaps(lab, train, valid)
    write_relations(lab, train, valid)


def _overlaps(lab: Lab, train: Split, valid: Split) -> None:
    count = len(valid.samples)
    found = overlap(train, valid)
    if found is None:
        absent(lab, (DATASET_OVERLAP,), "inputs of these samples cannot be compared")
    else:
        lab.write(DATASET_OVERLAP, [len(found.inputs) / count], trial="inputs")
        lab.write(DATASET_OVERLAP, [found.whole / count], trial="inputs and targets")
        lab.event(SamplesFound("overlap", pairs=found.inputs[:_NAMED]))
    for signal, what, pairs in (
        (DATASET_WINDOW_OVERLAP, "window overlap", overlapping_windows(train, valid)),
        (DATASET_NEAR_OVERLAP, "near overlap", near_pairs(train, valid)),
    ):
        if pairs is None:
            absent(lab, (signal,), "inputs are not points of several dimensions")
            continue
        lab.write(signal, [len(pairs) / count], trial="inputs")
        if pairs:
            lab.event(SamplesFound(what, pairs=pairs[:_NAMED]))


def _name(lab: Lab, what: str, split: Split, indices: Sequence[object]) -> None:
    if indices:
        lab.event(SamplesFound(what, split.name, indices=tuple(indices)))
