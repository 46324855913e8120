"""The learning-rate finders in use, called as their guides do: what each suggests for a task.

`pip install torch-lr-finder lightning fastai`; one that is not installed is left out. Their loops
are given the task's own model, loss, optimizer, clipping and batches, so a model here is one that
returns its loss.
"""

import contextlib
import io
import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from bench.lr_range.workloads import Batch, Task

Suggestions = dict[str, float | None]  # by rule; None where there is none

FASTAI = ("valley", "slide", "minimum", "steep")


def installed() -> dict[str, Callable[[Task], Suggestions]]:
    """The peers that can be asked."""
    known = {"torch_lr_finder": torch_lr_finder, "lightning": lightning, "fastai": fastai}
    return {name: ask for name, ask in known.items() if find_spec(name)}


def torch_lr_finder(task: Task) -> Suggestions:
    """`range_test` from 1e-7 to its default of 10 in 100 steps; the steepest point of `plot`."""
    from matplotlib.figure import Figure
    from torch_lr_finder import LRFinder, TrainDataLoaderIter

    class Whole(TrainDataLoaderIter):  # type: ignore[misc]
        def inputs_labels_from_batch(self, batch_data: Batch) -> tuple[Batch, int]:
            return batch_data, 0

    if task.max_norm is not None:  # its loop cannot clip; the training can
        task.optimizer.register_step_pre_hook(lambda *_: _clip(task))
    with _silence():
        finder = LRFinder(_WithLoss(task), task.optimizer, lambda loss, _: loss)
        finder.range_test(Whole(task.loader), start_lr=1e-7)
        try:
            _, rate = finder.plot(ax=Figure().subplots())
        except RuntimeError:  # too few points
            rate = None
    return {"torch-lr-finder": rate}


def lightning(task: Task) -> Suggestions:
    """`Tuner.lr_find` with its defaults: 1e-8 to 1 in 100 steps."""
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.tuner import Tuner

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = task.model

        def training_step(self, batch: Batch, _: int) -> Tensor:
            return task.loss(self.model, batch)

        def configure_optimizers(self) -> Any:
            return task.optimizer

    with _silence(), tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            gradient_clip_val=task.max_norm,
            default_root_dir=folder,
            max_epochs=-1,
        )
        finder = Tuner(trainer).lr_find(Module(), train_dataloaders=task.loader, update_attr=False)
        rate = finder.suggestion() if finder is not None else None
    return {"Lightning": rate}


def fastai(task: Task) -> Suggestions:
    """`Learner.lr_find` with its defaults, 1e-7 to 10 in 100 steps, by each of its four rules."""
    from fastai.callback import schedule, training
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner
    from fastai.optimizer import OptimWrapper

    loader = DataLoader(_Doubled(task.loader.dataset), sampler=task.loader.sampler, batch_size=None)
    clipping = [] if task.max_norm is None else [training.GradientClip(task.max_norm)]
    found: Suggestions = dict.fromkeys(f"fastai {rule}" for rule in FASTAI)
    with _silence(), tempfile.TemporaryDirectory() as folder:
        learner = Learner(
            DataLoaders(loader, loader, device=torch.device("cpu")),
            _WithLoss(task),
            loss_func=lambda loss, _: loss.float(),  # its recorder stumbles over bfloat16
            opt_func=lambda *_, **__: OptimWrapper(opt=task.optimizer),
            cbs=clipping,
            path=Path(folder),
        )
        learner.lr_find(show_plot=False, suggest_funcs=())
        # As `lr_find` itself goes on; a rule that fails leaves the others theirs.
        rates = torch.tensor(learner.recorder.lrs[10:-5])
        losses = torch.tensor([float(each) for each in learner.recorder.losses[10:-5]])
        if bad := torch.isnan(losses).nonzero().flatten().tolist():
            rates, losses = rates[: bad[0]], losses[: bad[0]]
        for rule in FASTAI:
            with contextlib.suppress(IndexError, ValueError, RuntimeError):
                found[f"fastai {rule}"] = vars(schedule)[rule](rates, losses, 100)[0]
    return {
        rule: rate if rate is not None and math.isfinite(rate) and rate > 0 else None
        for rule, rate in found.items()
    }


def _clip(task: Task) -> None:
    nn.utils.clip_grad_norm_(task.model.parameters(), task.max_norm or math.inf)


class _WithLoss(nn.Module):
    def __init__(self, task: Task) -> None:
        super().__init__()
        self.model, self.loss = task.model, task.loss

    def forward(self, batch: Batch) -> Tensor:
        return self.loss(self.model, batch)


class _Doubled(Dataset[tuple[Batch, Tensor]]):
    """Batches with something in the place of labels."""

    def __init__(self, batches: Dataset[Batch]) -> None:
        self._batches = batches

    def __getitem__(self, index: Any) -> tuple[Batch, Tensor]:
        return tuple(self._batches[index]), torch.zeros(1)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield
