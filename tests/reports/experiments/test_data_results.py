"""What is shown of the data sets: sizes, classes, order, samples."""

from tabled import shown, table

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
from synthetic import run_of


def test_sizes_classes_and_samples() -> None:
    sample = SampleShown("train", 17, inputs="[0.1 0.2] (2)", targets="1")
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
        events=[Event(0, 0.0, sample)],
    )
    assert table(run, "data").rows == (
        ("train", 400, 100, 0.5, 0.25, 1.0),
        ("valid", 50, 50, None, None, None),
    )
    assert table(run, "classes").rows == (("train", 0, 75.0), ("train", 1, 25.0))
    assert table(run, "samples").rows == (("train", 17, "[0.1 0.2] (2)", "1"),)
    text = " ".join(shown(run).split())
    assert "0.01 times as often" in text
    assert "20 classes; the largest, 19, has 24.0% of the samples" in text
