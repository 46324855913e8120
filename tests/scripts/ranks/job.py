"""Four ranks of data-parallel training: `job.py FAULT RUN`, with a fault on rank 2."""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from holter import Run
from holter.record.heartbeat import Activity

RANKS, FAULTY, STEP = 4, 2, 12
SILENT = 3.0  # seconds: more than the limit that the test sets


def train(rank, store, fault, run):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    x = torch.randn(768, 8)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
    sampler = DistributedSampler(TensorDataset(x, y))
    loader = DataLoader(sampler.dataset, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    step = 0
    for epoch in range(2):
        if fault != "repeated":
            sampler.set_epoch(epoch)
        for inputs, targets in loader:
            if step == STEP and rank == FAULTY:
                disturb(fault, model, run)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            step += 1
    dist.destroy_process_group()


def disturb(fault, model, run):
    if fault == "diverged":
        with torch.no_grad():
            model.module[0].bias[3] += 1e-3
    elif fault == "killed":
        deadline = time.monotonic() + 60
        while not all_others_wait(run) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "stalled":
        time.sleep(3600)


def all_others_wait(run):
    """Whether the other ranks are in backward: once a rank is gone, they are terminated."""
    beats = [Run.load(run).of_rank(rank).heartbeat for rank in range(RANKS) if rank != FAULTY]
    return all((beat.step, beat.activity) == (STEP, Activity.BACKWARD) for beat in beats)


def all_stand(run):
    """Whether every rank was silent where it ends: one may have been so earlier on."""
    stacks = [path.read_text() for path in run.glob("*/*/stacks.txt")]
    stand = [text for text in stacks if "time.sleep(3600)" in text or "loss.backward()" in text]
    if len(stand) < RANKS:
        return False
    beats = [Run.load(run).of_rank(rank).heartbeat for rank in range(RANKS)]
    return all(beat.step == STEP and beat.silence > SILENT for beat in beats)


def main(fault, run):
    with tempfile.TemporaryDirectory() as folder:
        arguments = (f"{folder}/store", fault, run)
        job = mp.start_processes(
            train, args=arguments, nprocs=RANKS, start_method="fork", join=fault != "stalled"
        )
        if job is None:
            return
        deadline = time.monotonic() + 60
        while not all_stand(run) and time.monotonic() < deadline:
            time.sleep(0.05)
        print([Run.load(run).of_rank(rank).heartbeat.step for rank in range(RANKS)])  # as it hangs
        for process in job.processes:
            process.kill()
            process.join()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
