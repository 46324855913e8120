from holter.record import Event
from holter.record.events import SampleShown
from holter.record.signals import (
    DATASET_ABSMAX,
    DATASET_CLASS,
    DATASET_CLASS_COUNT,
    DATASET_EXAMINED,
    DATASET_LABEL_CHANGES,
    DATASET_LENGTH,
    DATASET_MEAN,
    DATASET_STD,
)
from holter.reports._lines import painted
from holter.reports.experiments.data import lines
from synthetic import run_of


def test_sizes_classes_and_samples() -> None:
    shown = SampleShown("train", 17, inputs="[0.1 0.2] (2)", targets="1")
    run = run_of(
        {
            DATASET_EXAMINED: {"train": [100], "valid": [50]},
            DATASET_LENGTH: {"train": [400], "valid": [50]},
            DATASET_MEAN: {"train": [0.5]},
            DATASET_STD: {"train": [0.25]},
            DATASET_ABSMAX: {"train": [1.0]},
            DATASET_CLASS: {"train": [0, 1], "valid": list(range(20))},
            DATASET_CLASS_COUNT: {"train": [75, 25], "valid": [2] * 19 + [12]},
            DATASET_LABEL_CHANGES: {"train": [0.01]},
        },
        events=[Event(0, 0.0, shown)],
    )
    said = painted(lines(run, 90), color=False)
    assert "100 of 400 samples read; inputs 0.5 ± 0.25, largest 1" in said
    assert "0: 75.0%, 1: 25.0%" in said
    assert "0.01 times as often" in said
    assert "17  [0.1 0.2] (2)  ->  1" in said
    assert "20 classes, from 19 with 24.0%" in said


def test_nothing_to_say() -> None:
    assert lines(run_of({}), 90) == []
