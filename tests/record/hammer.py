"""Writes a run as fast as it can and acknowledges each step: the victim of the kill tests."""

import os
import sys

import numpy as np

from holter.record import Writer
from holter.record.events import LrRangeStop

OWNERS = tuple(f"layer.{i}.weight" for i in range(40))
ONE = ("",)


def loss(step: int) -> np.ndarray:
    return np.array([step * 0.5], np.float32)


def norms(step: int) -> np.ndarray:
    return np.arange(40, dtype=np.float32) + step % 1000


def hammer(path: str, segment_bytes: int, stream_bytes: int, steps: int) -> None:
    writer = Writer(
        path,
        status="running",
        resume=True,
        segment_bytes=segment_bytes,
        stream_bytes=stream_bytes,
    )
    for step in range(steps):
        writer.write("steps", step, [("loss", ONE, loss(step))])
        writer.write("parameters", step, [("grad.norm", OWNERS, norms(step))])
        if step % 50 == 0:
            writer.event(LrRangeStop("", "", rate=float("nan")), step)
            writer.update_meta(steps=step)
        os.write(1, step.to_bytes(8, "little"))  # acknowledged
    writer.close()
    writer.update_meta(status="finished")


if __name__ == "__main__":
    hammer(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
