"""Runs of several ranks made by hand, on disk: milliseconds, and no torch."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from holter.record import Run, Writer
from holter.record.events import Occurrence, ProcessGroupSeen
from holter.record.heartbeat import FILE, LINE, Activity
from holter.record.meta import Environment, Machine
from holter.record.signals import CATALOGUE, Signal

HOST = "another machine"


@dataclass(frozen=True)
class Process:
    """What one rank left behind."""

    readings: Mapping[Signal, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    events: Sequence[Occurrence] = ()
    status: str = "finished"
    steps: int = 0
    beat: tuple[int, Activity, float, float] | None = None  # step, activity, its wall, last alive
    wrapper: str = "DistributedDataParallel"
    variables: Mapping[str, str] = field(default_factory=dict)
    shards: int = 1
    in_group: bool = True


def ranked(folder: Path, processes: Mapping[int, Process], *, world: int | None = None) -> Run:
    """Write the ranks of a run, and load the first."""
    size = len(processes) if world is None else world
    for rank, process in processes.items():
        environment = Environment(machine=Machine(host=HOST), variables=process.variables)
        writer = Writer(folder, rank=rank, status="running", environment=environment)
        replicas = size if process.wrapper else 0
        if process.in_group:
            writer.event(
                ProcessGroupSeen("gloo", rank, size, process.wrapper, replicas, process.shards), 0
            )
        for signal, owners in process.readings.items():
            for owner, values in owners.items():
                for step, value in enumerate(values):
                    row = (signal.name, (owner,), np.array([value], np.float32))
                    writer.write(CATALOGUE[signal.name].stream, step, [row])
        if process.beat is not None:
            step, activity, wall, alive = process.beat
            lines = (f"{step} {activity} {wall:.3f}", f"{os.getpid()} 1 {alive:.3f}")
            text = "".join(line.ljust(LINE - 1) + "\n" for line in lines)
            (folder / f"rank-{rank}" / FILE).write_text(text)
        for event in process.events:  # after the beat, as a silence is
            writer.event(event, process.steps)
        writer.update_meta(status=process.status, steps=process.steps)
        writer.close()
    return Run.load(folder)
