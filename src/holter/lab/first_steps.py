"""Record the first steps of a setup with an ordinary watch, then restore its state."""

from pathlib import Path

from holter.lab.setup import Setup
from holter.lab.state import kept
from holter.record import environment
from holter.watching.recorder import Recorder
from holter.watching.watch import Watch


def record_first_steps(setup: Setup, path: Path, steps: int) -> None:
    """Record `steps` training steps and one validation, reading every signal at each step."""
    recorder = Recorder(path, rank=0, environment=environment.describe())
    optimizers = {str(n) if n else "": each for n, each in enumerate(setup.optimizers)}
    with kept(setup), Watch(recorder, budget=None, announce=False, black_box=False) as watch:
        watch.add(setup.models, optimizers)
        batches = setup.endless()
        for _ in range(steps):
            watch.log(loss=setup.step(*(next(batches) for _ in range(setup.accumulation))))
        _validate(setup, watch)


def _validate(setup: Setup, watch: Watch) -> None:
    import torch

    if setup.valid is None:
        return
    for model in setup.models.values():
        model.eval()
    with torch.no_grad():
        for number, batch in enumerate(setup.valid):
            if number == 4:
                break
            watch.log(val_loss=setup.loss(batch))
