import pytest

from holter.diagnosis.rules.impossible_alignments import impossible_alignments
from holter.record.findings import Clear, Confidence
from holter.record.signals import (
    ALIGNMENT_FRAMES,
    ALIGNMENT_IMPOSSIBLE_FRACTION,
    ALIGNMENT_USED,
)
from synthetic import found, run_of, said

VARIED = [20.0, 24.0, 22.0, 26.0, 28.0, 21.0]


def run(used: list[float], frames: list[float]):
    return run_of(
        {
            ALIGNMENT_IMPOSSIBLE_FRACTION: {"ctc_loss": [0.0] * len(used)},
            ALIGNMENT_USED: {"ctc_loss": used},
            ALIGNMENT_FRAMES: {"ctc_loss": frames},
        }
    )


def test_lengths_that_were_divided_twice() -> None:
    (finding,) = found(impossible_alignments, run([0.5, 0.5, 0.5, 0.5, 0.5, 0.476], VARIED))
    assert finding.confidence is Confidence.LIKELY
    assert "50 % of the frames" in finding.summary


@pytest.mark.parametrize(
    ("used", "frames"),
    [
        ([1.0] * 6, VARIED),
        ([0.5] * 6, [30.0] * 6),  # padded to a fixed number of frames
        ([0.9, 0.6, 0.4, 0.7, 0.5, 0.8], VARIED),  # to one that varies
        ([0.5] * 3, VARIED[:3]),
    ],
)
def test_lengths_that_leave_nothing_out(used: list[float], frames: list[float]) -> None:
    (verdict,) = said(impossible_alignments, run(used, frames))
    assert isinstance(verdict, Clear)
