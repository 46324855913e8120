"""Small real trainings of many shapes, and how to record one."""

import contextlib
import io
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import distributed, nn
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from holter import Run, Watch
from holter.watching.recorder import Recorder


def seed():
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


@dataclass
class Training:
    """What is trained, and the loop; `log` is there for loops that log."""

    models: list[nn.Module]
    optimizers: list[Optimizer]
    loop: Callable[[Callable[..., None]], None]
    keeps: list[object] = field(default_factory=list)

    def weights(self):
        return [
            each.detach().clone() for model in self.models for each in model.state_dict().values()
        ]


def mlp(outputs=3):
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, outputs)
    )


def classes(n=32):
    return TensorDataset(torch.randn(n, 6), torch.randint(0, 3, (n,)))


def everything():
    """Dropout, Adam, clipping, a scheduler, validation, loaders, and a loop that logs."""
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = lr_scheduler.CosineAnnealingLR(optimizer, 8)
    train, valid = DataLoader(classes(), 8, shuffle=True), DataLoader(classes(16), 8)

    def loop(log):
        for _ in range(2):
            model.train()
            for x, y in train:
                loss = functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                schedule.step()
                log(loss=loss)
            model.eval()
            with torch.no_grad():
                for x, y in valid:
                    functional.cross_entropy(model(x), y)
            log(val_accuracy=0.5)

    return Training([model], [optimizer], loop)


def gan():
    """Two models, two optimizers, and a generator that pollutes the critic's gradients."""
    maker, critic = (
        nn.Linear(4, 6),
        nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 1)),
    )
    optimizers = [
        torch.optim.SGD(maker.parameters(), lr=0.1, momentum=0.5),
        torch.optim.Adam(critic.parameters(), lr=0.01),
    ]

    def loop(_log):
        for _ in range(4):
            optimizers[1].zero_grad()
            real, fake = critic(torch.randn(5, 6)), critic(maker(torch.randn(5, 4)).detach())
            (functional.softplus(-real).mean() + functional.softplus(fake).mean()).backward()
            optimizers[1].step()
            optimizers[0].zero_grad()
            functional.softplus(-critic(maker(torch.randn(5, 4)))).mean().backward()
            optimizers[0].step()

    return Training([maker, critic], optimizers, loop)


def lbfgs():
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    x, y = torch.randn(16, 6), torch.randn(16, 1)

    def closure():
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    def loop(_log):
        for _ in range(3):
            optimizer.step(closure)

    return Training([model], [optimizer], loop)


def scaler():
    """A GradScaler on the CPU; the third step overflows and is skipped."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    grad_scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def loop(_log):
        for step in range(5):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
            grad_scaler.scale(loss * (float("inf") if step == 2 else 1.0)).backward()
            if step % 2:
                grad_scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            grad_scaler.step(optimizer)
            grad_scaler.update()

    return Training([model], [optimizer], loop, [grad_scaler])


def accumulation():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)

    def loop(_log):
        for step in range(12):
            x, y = torch.randn(4, 6), torch.randint(0, 3, (4,))
            (functional.cross_entropy(model(x), y) / 3).backward()
            if step % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()

    return Training([model], [optimizer], loop)


def sparse_double_and_complex():
    """Odd tensors: sparse gradients, float64, complex, a parameter of no elements, a frozen one."""

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 3, sparse=True)
            self.fine = nn.Parameter(torch.randn(3, dtype=torch.float64))
            self.wave = nn.Parameter(torch.randn(3, dtype=torch.complex64))
            self.empty = nn.Parameter(torch.zeros(0))
            self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)

        def forward(self, x, shift, scales):
            mixed = self.table(x).double() * self.fine + self.wave.abs()
            return (mixed * scales.sum() + shift.sum()).sum() + self.empty.sum()

    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def loop(_log):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randint(0, 10, (4,)), *torch.rand(2, 4, 3)).pow(2).backward()
            optimizer.step()

    return Training([model], [optimizer], loop)


def modules_of_all_kinds():
    """In-place ReLUs, attention, recurrence, checkpoints, autocast, nan_to_num, a dict, a cat."""

    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.see = nn.Sequential(nn.Conv1d(2, 6, 3), nn.BatchNorm1d(6), nn.ReLU(inplace=True))
            self.attend = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
            self.remember = nn.LSTM(6, 4, batch_first=True)
            self.think = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2), nn.Tanh())
            self.weigh = nn.Linear(5, 4)
            self.choose = nn.Softmax(dim=-1)

        def forward(self, x):
            times = torch.arange(5.0).expand(len(x), 5)[..., None]
            x = self.attend(self.see(x).transpose(1, 2))
            x, _ = self.remember(x)
            for reentrant in (False, True) if self.training else ():
                x = checkpoint(self.think, x, use_reentrant=reentrant)
            x = self.weigh(torch.cat([x, times.to(x.dtype)], -1))
            return {"mask": x > 0, "choice": self.choose(x[:, -1].nan_to_num())}

    model = Many()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loop(_log):
        for _ in range(5):
            with torch.autocast("cpu", torch.bfloat16):
                choice = model(torch.randn(4, 2, 7))["choice"]
            optimizer.zero_grad()
            (choice.float() - 0.5).pow(2).mean().backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                model(torch.randn(4, 2, 7))
            model.train()

    return Training([model], [optimizer], loop)


def losses_of_all_kinds():
    """Tokens, some ignored, yes or no, a number, distributions: a loss for each, which is kept."""

    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 5)
            self.token, self.flag, self.number = nn.Linear(5, 7), nn.Linear(5, 1), nn.Linear(5, 1)

        def forward(self, tokens):
            x = self.embed(tokens)
            return self.token(x).transpose(1, 2), self.flag(x[:, 0]), self.number(x[:, 0])

    model = Heads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loop(_log):
        kept = []
        for _ in range(4):
            tokens = torch.randint(0, 7, (3, 5))
            logits, flag, number = model(tokens)
            following = torch.where(tokens == 0, -100, tokens.roll(-1, 1))
            weight = torch.linspace(1, 2, 7)
            loss = functional.cross_entropy(logits, following, weight, label_smoothing=0.1)
            loss += functional.binary_cross_entropy_with_logits(
                flag, (tokens[:, :1] > 3).float(), pos_weight=weight[:1]
            )
            loss += functional.mse_loss(number, target=torch.randn(3, 1), reduction="sum")
            labels = torch.rand(3, 7, 5).round()
            loss += functional.binary_cross_entropy(logits.sigmoid(), labels)
            logs = logits.log_softmax(1)
            loss += functional.kl_div(logs, torch.rand(3, 7, 5).softmax(1), reduction="batchmean")
            loss += functional.ctc_loss(
                logs.permute(2, 0, 1), tokens[:, :2] % 6 + 1, [5, 5, 4], [2, 1, 2]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(loss)  # with its graph
            with torch.no_grad():
                logits, flag, number = model(tokens)
                functional.cross_entropy(logits, following)
                functional.binary_cross_entropy_with_logits(flag, (tokens[:, :1] > 3).float())
                functional.mse_loss(number, tokens[:, :1].float())

    return Training([model], [optimizer], loop)


def resumed_policy():
    """A policy gradient that goes on from the weights of a checkpoint, without its other states."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = lr_scheduler.StepLR(optimizer, 2)
    state = {"step": torch.tensor(7.0), "exp_avg": torch.zeros(8, 4)}
    groups = [{**optimizer.param_groups[0], "params": [0, 1, 2, 3]}]
    file = io.BytesIO()
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": {"state": {0: state}, "param_groups": groups},
            "schedule": {**schedule.state_dict(), "last_epoch": 7},
        },
        file,
    )

    def loop(_log):
        file.seek(0)
        model.load_state_dict(torch.load(file)["model"])
        for _ in range(4):
            choice = torch.distributions.Categorical(logits=model(torch.randn(6, 4)))
            action = choice.sample()
            loss = -(choice.log_prob(action) * torch.randn(6)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()

    return Training([model], [optimizer], loop)


def handwritten():
    """A loss by hand: the log of a softmax, a root, a ratio, pairs, a mean over some samples."""
    model, single = mlp(4), nn.Linear(6, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *single.parameters()], lr=0.05)

    def loop(_log):
        stored = [(torch.zeros(6), number) for number in range(16)]
        for number in range(4):
            stored.append((torch.zeros(6), number))
            out, labels = model(torch.randn(8, 6)), torch.randint(0, 3, (8,))
            chosen = torch.softmax(out[:, :3], 1).gather(1, labels[:, None]).squeeze(1)
            mask = torch.tensor([1.0, 0.0, 1.0, 1.0] * 2)
            loss = -((chosen + 1e-8).log() * mask).sum() / mask.sum()
            loss = loss + ((out[:, 3] - torch.randn(8)) ** 2).mean().sqrt()
            loss = loss + (single(torch.randn(8, 6)) - torch.randn(8)).abs().mean()
            loss = loss + (chosen - chosen.detach()).exp().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return Training([model, single], [optimizer], loop)


def one_of_a_group():
    """A process of a torch.distributed group, be it the only one."""
    if distributed.is_initialized():  # a test before this one failed
        distributed.destroy_process_group()
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    model = nn.Sequential(nn.EmbeddingBag(9, 6), mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    tokens = TensorDataset(torch.randint(9, (16, 6)), torch.randint(3, (16,)))
    loader = DataLoader(tokens, 8)

    def loop(log):
        for inputs, labels in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for inputs, labels in loader:
                (model(inputs).argmax(1) == labels).sum()
        distributed.destroy_process_group()

    return Training([model], [optimizer], loop)


TRAININGS = (
    everything,
    gan,
    lbfgs,
    scaler,
    accumulation,
    sparse_double_and_complex,
    modules_of_all_kinds,
    losses_of_all_kinds,
    handwritten,
    resumed_policy,
    one_of_a_group,
)


def rng_states():
    name, keys, *rest = np.random.get_state()
    return torch.get_rng_state().tolist(), (name, keys.tolist(), rest), random.getstate()


def recorder(path):
    return Recorder(path, rank=0)


def open_watch(path, training, collectors: Iterable | None = None, **options) -> Watch:
    watch = Watch(recorder(path), collectors=collectors, announce=False, **options)
    watch.add(training.models, training.optimizers)
    return watch


def record(path, make, collectors=None, **options):
    """Record one of the trainings; it, its run, and the state of all random generators after."""
    seed()
    training = make()
    with open_watch(path, training, collectors, **options) as watch:
        training.loop(watch.log)
    return training, Run.load(path), rng_states()


@contextlib.contextmanager
def watching(path, models, optimizers, **options):
    """Watch quietly; yields the watch, whose run `run_of` reads afterwards."""
    watch = Watch(recorder(path), announce=False, **options)
    watch.add(models, optimizers)
    with watch:
        yield watch


def values(run, signal, owner=""):
    return run[signal][owner].values.tolist()
