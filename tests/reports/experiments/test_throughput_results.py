"""What is shown of the speed that a training could have."""

import pytest
from tabled import shown, table

from holter.record.signals import THROUGHPUT_COPY, THROUGHPUT_FLOPS, THROUGHPUT_STEP_TIME
from synthetic import run_of


@pytest.mark.parametrize(
    ("peak", "use"),
    [
        ({"peak": [9.89e14]}, "396 TFLOP/s with a cached batch: MFU 40 % of 989 TFLOP/s"),
        ({}, "396 TFLOP/s with a cached batch"),
    ],
)
def test_the_use_of_a_gpu(peak: dict[str, list[float]], use: str) -> None:
    run = run_of(
        {
            THROUGHPUT_STEP_TIME: {"cached": [0.1], "loader": [0.25]},
            THROUGHPUT_COPY: {"batch": [0.02]},
            THROUGHPUT_FLOPS: {"step": [3.956e13], **peak},
        }
    )
    notes = " ".join(table(run, "time of a training step").notes)
    assert use in notes
    assert "2.5 times as fast" in notes
    assert "copying a batch to the GPU takes 20 ms (20 % of a step)" in notes
    assert "MFU" in shown(run) or not peak
