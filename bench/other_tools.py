"""What watching costs beside other tools: `python -m bench.other_tools [--device cuda]`.

Two copies of one training, same seed and same data, in one process: one is bare, the other is
watched for the whole time. Blocks of steps alternate between them (bare, watched, watched, bare,
...), so that whatever else the machine does falls on both alike. While the bare copy runs, what the
watching tool has put into torch itself (holter's taps on `backward` and the like) is taken out.
"""

import argparse
import contextlib
import gc
import importlib.metadata
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad
from torch.optim import Optimizer, lr_scheduler
from torch.utils.data import DataLoader, dataloader

from holter.record.events import HolterFailed

BATCHES = 8  # made in advance, used in turn
WARM_STEPS = {"cpu": 24, "cuda": 12}  # at least; excluded
SECONDS = {"cpu": 0.1, "cuda": 0.4}  # of a bare block; CPUs are shared, so that short is better
ROUNDS = {"cpu": (41, 15), "cuda": (11, 5)}  # of holter's modes, of the others
ALLOWANCE = {"cpu": 0.02, "cuda": 0.005}  # s; see holter_mode
MEGA = 1e6

# The models.


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Mix positions."""
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width, bias=False),
            nn.GELU(),
            nn.Linear(4 * width, width, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Both residual branches."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """A minimal GPT with tied embeddings."""

    def __init__(self, layers: int, width: int, heads: int, length: int, vocabulary: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits, one row a position."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.position(places)
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


class Bottleneck(nn.Module):
    """The residual block of a ResNet-50."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = 4 * width
        self.branch = nn.Sequential(
            *(nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after)),
        )
        self.short = nn.Identity()
        if stride != 1 or before != after:
            convolution = nn.Conv2d(before, after, 1, stride, bias=False)
            self.short = nn.Sequential(convolution, nn.BatchNorm2d(after))
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Branch plus short cut."""
        return self.relu(self.branch(x) + self.short(x))


def resnet50() -> nn.Module:
    """3 + 4 + 6 + 3 bottlenecks."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    before = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(count):
            layers.append(Bottleneck(before, width, stride if number == 0 else 1))
            before = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


class CharacterLSTM(nn.Module):
    """Two layers of 1,024."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits, one row a position."""
        return self.head(self.lstm(self.token(tokens))[0]).flatten(0, 1)


def mlp() -> nn.Module:
    """Three layers, about 0.5 ms a step on one core."""
    hidden = (nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    return nn.Sequential(*hidden, nn.Linear(64, 10))


def cnn() -> nn.Module:
    """Three convolutions with batch norm."""
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10))


Batch = tuple[Tensor, Tensor]


def vectors(batch: int, *shape: int, classes: int) -> Callable[[], Batch]:
    """Noise with labels."""
    return lambda: (torch.randn(batch, *shape), torch.randint(classes, (batch,)))


def tokens(batch: int, length: int, vocabulary: int) -> Callable[[], Batch]:
    """Random text."""

    def made() -> Batch:
        text = torch.randint(vocabulary, (batch, length + 1))
        return text[:, :-1].contiguous(), text[:, 1:].flatten()

    return made


@dataclass(frozen=True)
class Task:
    """A model and its batches; on CUDA also how it is run."""

    model: Callable[[], nn.Module]
    batch: Callable[[], Batch]
    devices: tuple[str, ...]
    what: str
    autocast: bool = False
    channels_last: bool = False


TASKS = {
    "mlp": Task(mlp, vectors(64, 64, classes=10), ("cpu",), "MLP 64-64-64-10, batch 64"),
    "cnn": Task(cnn, vectors(32, 3, 32, 32, classes=10), ("cpu",), "CNN, 3 conv, 32 x 3 x 32 x 32"),
    "transformer": Task(
        lambda: GPT(4, 128, 4, 64, 1000),
        tokens(8, 64, 1000),
        ("cpu",),
        "GPT 4 x 128, batch 8 x 64",
    ),
    "gpt124m": Task(
        lambda: GPT(12, 768, 12, 1024, 50304),
        tokens(12, 1024, 50304),
        ("cuda",),
        "GPT 12 x 768, batch 12 x 1,024, bf16 autocast, fused AdamW",
        autocast=True,
    ),
    "gpt759m": Task(
        lambda: GPT(36, 1280, 20, 1024, 38912),
        tokens(4, 1024, 38912),
        ("cuda",),
        "GPT 36 x 1280, batch 4 x 1,024, bf16 autocast, fused AdamW",
        autocast=True,
    ),
    "resnet50": Task(
        resnet50,
        vectors(64, 3, 224, 224, classes=1000),
        ("cuda",),
        "ResNet-50, batch 64 x 224 x 224, channels_last, bf16 autocast, fused AdamW",
        autocast=True,
        channels_last=True,
    ),
    "lstm": Task(
        lambda: CharacterLSTM(5000, 1024),
        tokens(64, 128, 5000),
        ("cuda",),
        "LSTM 2 x 1,024, batch 64 x 128, bf16 autocast, fused AdamW",
        autocast=True,
    ),
}


class Training:
    """A loop. `between` runs after backward and before the update, `after` at the end of a step."""

    def __init__(self, task: Task, device: str) -> None:
        torch.manual_seed(0)
        self.device = device
        self._autocast = task.autocast
        with torch.device(device):
            self.model = task.model()
            self.batches = [task.batch() for _ in range(BATCHES)]
        if task.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            last = torch.channels_last
            self.batches = [(x.contiguous(memory_format=last), y) for x, y in self.batches]
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-4, fused=True if device == "cuda" else None
        )
        self.steps = 0
        self.between: Callable[[nn.Module], object] | None = None
        self.after: Callable[[Tensor], object] | None = None

    def step(self) -> None:
        """One step of training."""
        x, y = self.batches[self.steps % BATCHES]
        self.steps += 1
        self.optimizer.zero_grad(set_to_none=True)
        if self._autocast:
            with torch.autocast(self.device, torch.bfloat16):
                loss = functional.cross_entropy(self.model(x), y)
        else:
            loss = functional.cross_entropy(self.model(x), y)
        loss.backward()
        if self.between is not None:
            self.between(self.model)
        self.optimizer.step()
        if self.after is not None:
            self.after(loss)


# The modes: each attaches itself to a training, and detaches itself when it is left.


@dataclass
class Attached:
    """What a mode may need beside hooks: switches around its blocks, and where holter records."""

    resume: Callable[[], object] | None = None
    pause: Callable[[], object] | None = None
    run: Path | None = None


Mode = Callable[[Training, Path], contextlib.AbstractContextManager[Attached]]


@contextlib.contextmanager
def bare(_training: Training, _folder: Path) -> Iterator[Attached]:
    """Nothing at all: how far two equal loops seem to differ is the resolution of the bench."""
    yield Attached()


def holter_mode(**options: Any) -> Mode:
    """`holter.watch` with these options, in its steady state.

    A watch begins to save once it has used its `ALLOWANCE` (two seconds in all). Here
    it has less, so that all of that lies in the warm-up, which is not measured.
    """

    @contextlib.contextmanager
    def attached(training: Training, folder: Path) -> Iterator[Attached]:
        import holter
        from holter.watching import budget as budgeting

        path, before = folder / "run", budgeting.ALLOWANCE
        budgeting.ALLOWANCE = ALLOWANCE[training.device]
        left = time.perf_counter()
        try:
            watch = holter.watch(training.model, training.optimizer, path, quiet=True, **options)
            step: Any = watch._loop.stepper.open  # noqa: SLF001

            def pause() -> None:
                nonlocal left
                left = time.perf_counter()

            def resume() -> None:  # or the blocks of the bare copy would pass for one long step
                if isinstance(step.began, float):
                    step.began += time.perf_counter() - left

            with watch:
                yield Attached(resume, pause, run=path)
        finally:
            budgeting.ALLOWANCE = before

    return attached


def loop_mode(read: Callable[[nn.Module], object]) -> Mode:
    """A function of the model, called between backward and update."""

    @contextlib.contextmanager
    def attached(training: Training, _folder: Path) -> Iterator[Attached]:
        training.between = read
        yield Attached()

    return attached


def articles(model: nn.Module) -> dict[str, float]:
    """The loop of the guides."""
    return {
        name: parameter.grad.norm().item()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def articles_weights(model: nn.Module) -> dict[str, float]:
    """The same with mean and standard deviation of the weights."""
    readings = articles(model)
    for name, parameter in model.named_parameters():
        readings[f"{name}.mean"] = parameter.detach().mean().item()
        readings[f"{name}.std"] = parameter.detach().std().item()
    return readings


def histograms(model: nn.Module) -> dict[str, tuple[float, float, Tensor]]:
    """Range and histogram of each gradient."""
    readings = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            values = parameter.grad.float()
            low, high = values.min().item(), values.max().item()
            readings[name] = low, high, torch.histc(values, 64, min=low, max=high).cpu()
    return readings


@contextlib.contextmanager
def lightning(training: Training, _folder: Path) -> Iterator[Attached]:
    """`grad_norm(self, norm_type=2)` as in `on_before_optimizer_step` of the docs; not logged."""
    try:
        from lightning.pytorch.utilities import grad_norm
    except ImportError:
        from pytorch_lightning.utilities import grad_norm
    training.between = lambda model: grad_norm(model, norm_type=2)
    yield Attached()


@contextlib.contextmanager
def transformers(training: Training, _folder: Path) -> Iterator[Attached]:
    """Detection of over- and underflow, as `TrainingArguments(debug="underflow_overflow")`."""
    from transformers.debug_utils import DebugUnderflowOverflow

    DebugUnderflowOverflow(training.model)
    yield Attached()


@contextlib.contextmanager
def torchmortem(training: Training, _folder: Path) -> Iterator[Attached]:
    """Its quick start: default ("balanced") sampling, `step(loss=loss.item())` after the update."""
    from torchmortem import Autopsy

    autopsy = Autopsy(training.model, optimizer=training.optimizer)
    autopsy.attach()
    training.after = lambda loss: autopsy.step(loss=loss.item())
    try:
        yield Attached()
    finally:
        autopsy.detach()


def wandb_mode(**options: Any) -> Mode:
    """`wandb.watch(model, log="all")` offline, and `wandb.log` of the loss each step."""

    @contextlib.contextmanager
    def attached(training: Training, folder: Path) -> Iterator[Attached]:
        import wandb

        quiet = wandb.Settings(silent=True, console="off")
        with wandb.init(project="bench", mode="offline", dir=str(folder), settings=quiet) as run:
            run.watch(training.model, log="all", **options)
            training.after = lambda loss: run.log({"loss": loss.item()})
            yield Attached()
            training.after = None
            run.unwatch(training.model)

    return attached


@contextlib.contextmanager
def anomaly(_training: Training, _folder: Path) -> Iterator[Attached]:
    """`torch.autograd.set_detect_anomaly(True)`, off while the bare copy runs."""
    switch = torch.autograd.set_detect_anomaly
    try:
        yield Attached(resume=lambda: switch(True), pause=lambda: switch(False))
    finally:
        switch(False)


MODES: dict[str, tuple[Mode, str]] = {
    "bare": (bare, "nothing: the resolution of this table"),
    "holter": (holter_mode(), "holter.watch(model, optimizer)"),
    "holter-everything": (holter_mode(budget=None), "holter.watch(..., budget=None)"),
    "articles": (loop_mode(articles), "grad.norm().item() per parameter"),
    "articles-weights": (loop_mode(articles_weights), "... and weight mean, std .item()"),
    "histograms": (loop_mode(histograms), "grad min, max, histc(64) per parameter"),
    "lightning": (lightning, "grad_norm(model, norm_type=2)"),
    "transformers": (transformers, "DebugUnderflowOverflow(model)"),
    "torchmortem": (torchmortem, "Autopsy(model, optimizer=optimizer)"),
    "wandb": (wandb_mode(), 'run.watch(model, log="all"): every 1,000 steps'),
    "wandb-100": (wandb_mode(log_freq=100), "... with log_freq=100, as its guide has it"),
    "anomaly": (anomaly, "torch.autograd.set_detect_anomaly(True)"),
}
OURS = ("bare", "holter", "holter-everything")  # get more rounds
PACKAGES = ("numpy", "lightning", "pytorch_lightning", "transformers", "torchmortem", "wandb")


class Patches:
    """What a tool replaced in torch itself: taken out while the bare copy runs."""

    def __init__(self) -> None:
        schedulers = [each for each in vars(lr_scheduler).values() if isinstance(each, type)]
        self._spaces = [
            *(torch, torch.autograd, Tensor, nn, nn.Module, functional, nn.utils, clip_grad),
            *(torch.amp.GradScaler, Optimizer, torch.optim.AdamW, DataLoader),
            *(dataloader._BaseDataLoaderIter, *schedulers),  # noqa: SLF001
        ]
        self._before = self._now()
        self._found: list[tuple[Any, str, Any, Any]] = []

    def find(self) -> None:
        """Compare with what was there when this was made."""
        before, now = self._before, self._now()
        self._found = [
            (self._spaces[place], name, before[place, name], value)
            for (place, name), value in now.items()
            if (place, name) in before and value is not before[place, name]
        ]

    def put(self) -> None:
        """As the tool wants it."""
        for space, name, _, after in self._found:
            setattr(space, name, after)

    def take(self) -> None:
        """As torch is."""
        for space, name, before, _ in self._found:
            setattr(space, name, before)

    def _now(self) -> dict[tuple[int, str], Any]:
        return {
            (place, name): value
            for place, space in enumerate(self._spaces)
            for name, value in list(vars(space).items())
            if callable(value)
        }


# The measurement.


@dataclass
class Plan:
    """How much is measured."""

    device: str
    seconds: float
    rounds: int | None
    steps: int | None
    quick: bool

    def rounds_of(self, mode: str) -> int:
        """Pairs of blocks."""
        if self.rounds is not None or self.quick:
            return max(5, self.rounds or 5)
        ours, peers = ROUNDS[self.device]
        return ours if mode in OURS else peers

    def steps_for(self, pilot: float) -> int:
        """Steps a block, if one takes so many milliseconds."""
        return self.steps or max(5, min(2000, round(self.seconds * 1e3 / pilot)))


@dataclass
class Result:
    """One row: times are milliseconds a step and lists have one entry a round."""

    model: str
    mode: str
    status: str = "ok"
    parameters: int = 0
    steps_a_block: int = 0
    bare_ms: list[float] = field(default_factory=list)
    watched_ms: list[float] = field(default_factory=list)
    bare_cpu_ms: list[float] = field(default_factory=list)
    watched_cpu_ms: list[float] = field(default_factory=list)
    own_ms: float | None = None
    own_device_ms: float | None = None
    held_mb: float | None = None
    peak_mb: float | None = None
    same_weights: bool | None = None
    remarks: list[str] = field(default_factory=list)

    def overhead(self) -> tuple[float, float, float]:
        """Median over rounds in percent, and the interval around it."""
        ratios = [w / b - 1 for w, b in zip(self.watched_ms, self.bare_ms, strict=True)]
        return tuple(100 * each for each in (statistics.median(ratios), *interval(ratios)))


def interval(values: Sequence[float], coverage: float = 0.93) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median with this probability."""
    ordered, n = sorted(values), len(values)
    cut = 0
    while 2 * (cut + 1) < n:
        missed = 2 * sum(math.comb(n, k) for k in range(cut + 2)) / 2**n
        if 1 - missed < coverage:
            break
        cut += 1
    return ordered[cut], ordered[n - 1 - cut]


def measure(task: str, mode: str, plan: Plan) -> Result:
    """One row of the table; whatever goes wrong is said in the row."""
    row = Row(Result(task, mode), plan, Patches())
    with tempfile.TemporaryDirectory(prefix="holter-bench-", ignore_cleanup_errors=True) as folder:
        try:
            row.measure(Path(folder))
        except ImportError as error:
            row.result.status = f"not installed ({error.name})"
        except torch.OutOfMemoryError:
            row.result.status = "out of memory"
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            row.result.status = f"failed: {type(error).__name__}: {first:.120}"
            if os.environ.get("HOLTER_BENCH_RAISE"):
                raise
        finally:
            row.patches.find()
            row.patches.take()  # whatever a tool left behind, or did not remove when it failed
    result = row.result
    del row
    gc.collect()
    if plan.device == "cuda":
        torch.cuda.empty_cache()
    return result


@dataclass
class Row:
    """The measurement of one model in one mode."""

    result: Result
    plan: Plan
    patches: Patches
    attached: Attached = field(default_factory=Attached)

    def measure(self, folder: Path) -> None:
        """Fill in the result."""
        result, plan = self.result, self.plan
        task, mode = TASKS[result.model], MODES[result.mode][0]
        (folder / "imports").mkdir()
        rehearsal = Training(TASKS["mlp"], plan.device)
        with mode(rehearsal, folder / "imports"):  # what a tool imports or compiles is not measured
            block(rehearsal, 3)
        plain, watched = Training(task, plan.device), Training(task, plan.device)
        result.parameters = sum(each.numel() for each in plain.model.parameters())
        for training in (plain, watched):
            block(training, 3)
        pilot, _ = block(plain, WARM_STEPS[plan.device])
        steps = result.steps_a_block = plan.steps_for(pilot)
        peak_before = peak(plain, steps)
        block(watched, plain.steps - watched.steps)
        held_before = memory(plan.device)
        warm = max(WARM_STEPS[plan.device], steps)
        with mode(watched, folder) as self.attached:
            self.patches.find()
            self.put()
            block(watched, warm - steps)
            peak_after = peak(watched, steps)
            self.take()
            block(plain, warm)
            for number in range(plan.rounds_of(result.mode)):
                self.pair(plain, watched, watched_first=number % 2 == 1)
            result.held_mb = memory(plan.device) - held_before
            self.put()
        watched.between = watched.after = None
        self.patches.take()
        if peak_before is not None and peak_after is not None:
            result.peak_mb = peak_after - peak_before
        states = [each.model.state_dict().values() for each in (plain, watched)]
        result.same_weights = all(torch.equal(a, b) for a, b in zip(*states, strict=True))
        if self.attached.run is not None:
            own_account(self.attached.run, warm, result)

    def pair(self, plain: Training, watched: Training, *, watched_first: bool) -> None:
        """One block of each."""
        gc.collect()
        for training in (watched, plain) if watched_first else (plain, watched):
            if training is watched:
                self.put()
            wall, cpu = block(training, self.result.steps_a_block)
            if training is watched:
                self.take()
                self.result.watched_ms.append(wall)
                self.result.watched_cpu_ms.append(cpu)
            else:
                self.result.bare_ms.append(wall)
                self.result.bare_cpu_ms.append(cpu)

    def put(self) -> None:
        """Let the tool see what comes."""
        self.patches.put()
        if self.attached.resume is not None:
            self.attached.resume()

    def take(self) -> None:
        """Hide what comes from the tool."""
        self.patches.take()
        if self.attached.pause is not None:
            self.attached.pause()


def block(training: Training, steps: int) -> tuple[float, float]:
    """Milliseconds a step: of the clock, and of this process on all its cores."""
    if steps <= 0:
        return 0.0, 0.0
    wait = torch.cuda.synchronize if training.device == "cuda" else _nothing
    step = training.step
    wait()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall / steps * 1e3, cpu / steps * 1e3


def _nothing() -> None:
    pass


def memory(device: str) -> float:
    """MB allocated on the GPU; on the CPU, MB of the process."""
    gc.collect()
    if device == "cuda":
        return torch.cuda.memory_allocated() / MEGA
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / MEGA


def peak(training: Training, steps: int) -> float | None:
    """The most that was allocated on the GPU during a block; None on the CPU."""
    if training.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    block(training, steps)
    if training.device != "cuda":
        return None
    return torch.cuda.max_memory_allocated() / MEGA


def own_account(path: Path, first: int, result: Result) -> None:
    """What holter says it took, in ms a step from step `first` on, and where it failed."""
    from holter.record import Run

    run = Run.load(path)
    failed = run.events_of(HolterFailed)
    result.remarks = [f"{each.what.where} failed: {each.what.error}" for each in failed]
    seconds = {}
    for name in ("watch.time", "watch.device_time"):
        for series in run.tables.get(name, {}).values():
            seconds[name] = series.values[series.steps >= first]
    steps = max(1, len(seconds.get("watch.time", ())))
    if "watch.time" in seconds:
        result.own_ms = 1e3 * float(seconds["watch.time"].sum()) / steps
    if "watch.device_time" in seconds:
        result.own_device_ms = 1e3 * float(np.nansum(seconds["watch.device_time"])) / steps


# The table.


def table(results: Sequence[Result], device: str) -> str:
    """A row for each result, as Markdown."""
    on_cpu = device == "cpu"
    heads = ["model", "mode", "bare ms", "+ ms", "overhead", "interval", "all blocks"]
    heads += ["CPU time"] if on_cpu else []
    heads += ["holter's own", "held MB"] if on_cpu else ["own, host", "own, device", "held MB"]
    heads += [] if on_cpu else ["peak MB"]
    heads += ["same weights"]
    rows = [heads, ["---"] * 2 + ["--:"] * (len(heads) - 3) + ["---"]]
    for each in results:
        if each.status != "ok":
            rows.append([each.model, each.mode, each.status] + [""] * (len(heads) - 3))
            continue
        base = statistics.median(each.bare_ms)
        middle, low, high = each.overhead()
        total = percent(sum(each.watched_ms), sum(each.bare_ms))
        row = [each.model, each.mode, f"{base:.3f}", f"{middle / 100 * base:+.3f}"]
        row += [f"**{middle:+.1f} %**", f"{low:+.1f} .. {high:+.1f}", f"{total:+.1f} %"]
        if on_cpu:
            row.append(f"{percent(sum(each.watched_cpu_ms), sum(each.bare_cpu_ms)):+.1f} %")
        for own in (each.own_ms,) if on_cpu else (each.own_ms, each.own_device_ms):
            row.append("" if own is None else f"{100 * own / base:.1f} %")
        row.append("" if each.held_mb is None else f"{each.held_mb:.1f}")
        if not on_cpu:
            row.append("" if each.peak_mb is None else f"{each.peak_mb:.1f}")
        rows.append([*row, "yes" if each.same_weights else "**no**"])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def percent(more: float, less: float) -> float:
    """How much more, in percent."""
    return 100 * (more / less - 1)


def facts(device: str) -> dict[str, str]:
    """Where and with what this was measured."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    machine = f"{os.cpu_count()} CPU cores"
    if device == "cuda":
        machine = f"{torch.cuda.get_device_name()}, {machine}"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": "python -m bench.other_tools " + " ".join(sys.argv[1:]),
        "machine": machine,
        "load average": " / ".join(f"{each:.1f}" for each in os.getloadavg()),
        "threads": str(torch.get_num_threads()),
        "versions": ", ".join(
            [f"Python {platform.python_version()}", f"torch {torch.__version__}"]
            + [f"{name} {version}" for name, version in found.items()]
        ),
    }


def show(document: dict[str, Any]) -> None:
    """Print a document as `--json` writes it."""
    known = document["facts"]
    said = (
        f"`{known['command'].strip()}`, {known['date']}, {known['machine']} (load average"
        f" {known['load average']}), {known['threads']} torch thread(s), {known['versions']}."
    )
    print(textwrap.fill(said, 120, break_on_hyphens=False) + "\n")
    print(table([Result(**each) for each in document["results"]], document["device"]))
    for each in document["results"]:
        for remark in dict.fromkeys(each["remarks"]):
            print(f"\n**{each['model']}, {each['mode']}: {remark}**")
    print()
    for name in dict.fromkeys(each["model"] for each in document["results"]):
        count = max(each["parameters"] for each in document["results"] if each["model"] == name)
        print(f"- `{name}`: {TASKS[name].what}; {count:,} parameters")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="modes:\n" + "\n".join(f"  {name:<18} {what}" for name, (_, what) in MODES.items()),
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--models", nargs="+", choices=TASKS, help="default: the device's own")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--steps", type=int, help="steps a block (default: what --seconds hold)")
    parser.add_argument("--seconds", type=float, help="of a bare block (default: 0.1; cuda: 0.4)")
    parser.add_argument("--rounds", type=int, help="pairs of blocks, at least 5 (default: 5 to 41)")
    parser.add_argument("--threads", type=int, default=1, help="torch's, on the CPU (default: 1)")
    parser.add_argument("--minutes", type=float, help="begin no row after this (cuda: 7)")
    parser.add_argument("--quick", action="store_true", help="5 short rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print such a file; no measuring")
    args = parser.parse_args()
    if args.show is not None:
        show(json.loads(args.show.read_text()))
        return
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device here")
    if args.device == "cpu":
        torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    warnings.filterwarnings("ignore", "Full backward hook is firing")  # torchmortem's
    names = args.models or [name for name, task in TASKS.items() if args.device in task.devices]
    seconds = args.seconds or SECONDS[args.device]
    plan = Plan(args.device, seconds, args.rounds, args.steps, args.quick)
    document: dict[str, Any] = {"device": args.device, "facts": facts(args.device), "results": []}
    began = time.monotonic()
    minutes = args.minutes or (7 if args.device == "cuda" else math.inf)
    for name in names:
        for mode in args.modes:
            if time.monotonic() - began > 60 * minutes:
                result = Result(name, mode, status="not run (--minutes)")
            else:
                progress(f"{name}, {mode}", end=" ... ")
                result = measure(name, mode, plan)
                progress(brief(result))
            document["results"].append(asdict(result))
            if args.json is not None:
                args.json.write_text(json.dumps(document, indent=1))
    document["facts"]["load average"] += " before, " + facts(args.device)["load average"] + " after"
    if args.json is not None:
        args.json.write_text(json.dumps(document, indent=1))
    show(document)
    progress(f"{time.monotonic() - began:.0f} s")


def brief(result: Result) -> str:
    """A result in a few words."""
    if result.status != "ok":
        return result.status
    middle, low, high = result.overhead()
    return f"{middle:+.2f} % ({low:+.2f} .. {high:+.2f})"


def progress(what: str, end: str = "\n") -> None:
    """Say on standard error what is being measured."""
    print(what, file=sys.stderr, end=end, flush=True)


if __name__ == "__main__":
    main()
