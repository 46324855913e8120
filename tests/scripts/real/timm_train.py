"""Image training in the manner of large recipes: mixup, soft targets, EMA, a scheduler per update."""

import argparse
import math
import os
from collections import OrderedDict
from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--warmup-epochs", type=int, default=1)
parser.add_argument("--mixup", type=float, default=0.2)
parser.add_argument("--smoothing", type=float, default=0.1)
parser.add_argument("--model-ema-decay", type=float, default=0.95)
parser.add_argument("--clip-grad", type=float, default=5.0)
parser.add_argument("--output", default="output")
parser.add_argument("--fault", default="")
args = parser.parse_args()


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class Mixup:
    def __init__(self, alpha, smoothing, num_classes):
        self.alpha, self.smoothing, self.num_classes = alpha, smoothing, num_classes

    def __call__(self, x, target):
        lam = np.random.beta(self.alpha, self.alpha)
        off = self.smoothing / self.num_classes
        y = torch.full((len(target), self.num_classes), off)
        y.scatter_(1, target[:, None], 1.0 - self.smoothing + off)
        return x * lam + x.flip(0) * (1 - lam), y * lam + y.flip(0) * (1 - lam)


class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x, target):
        return torch.sum(-target * F.log_softmax(x, dim=-1), dim=-1).mean()


class ModelEma(nn.Module):
    def __init__(self, model, decay):
        super().__init__()
        self.module = deepcopy(model)
        self.module.eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(
            self.module.state_dict().values(), model.state_dict().values(), strict=True
        ):
            ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)


class CosineLRScheduler:
    """Set the rate after each update, with a warm-up."""

    def __init__(self, optimizer, total, warmup):
        self.optimizer, self.total, self.warmup = optimizer, total, warmup
        self.base = [group["lr"] for group in optimizer.param_groups]
        self.step_update(0)

    def step_update(self, num_updates):
        if num_updates < self.warmup:
            factor = (num_updates + 1) / (self.warmup + 1)
        else:
            factor = 0.5 * (1 + math.cos(math.pi * min(num_updates / self.total, 1.0)))
        for group, base in zip(self.optimizer.param_groups, self.base, strict=True):
            group["lr"] = base * factor


def create_model():
    return nn.Sequential(
        nn.Conv2d(3, 12, 3, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 8),
    )


def param_groups_weight_decay(model, weight_decay):
    decay = [p for p in model.parameters() if p.ndim > 1]
    no_decay = [p for p in model.parameters() if p.ndim <= 1]
    return [
        {"params": no_decay, "weight_decay": 0.0},
        {"params": decay, "weight_decay": weight_decay},
    ]


def create_dataset(count, seed):
    prototypes = F.interpolate(
        torch.randn(8, 3, 3, 3, generator=torch.Generator().manual_seed(4)), size=12
    )
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 8, (count,), generator=generator)
    noise = torch.randn(count, 3, 12, 12, generator=generator)
    return TensorDataset(prototypes[labels] + 0.8 * noise, labels)


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, mixup_fn, scheduler, model_ema):
    losses_m = AverageMeter()
    model.train()
    num_updates = epoch * len(loader)
    for batch_idx, (input, target) in enumerate(loader):
        if mixup_fn is not None:
            input, target = mixup_fn(input, target)
        output = model(input)
        loss = loss_fn(output, target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        optimizer.step()
        model_ema.update(model)
        num_updates += 1
        scheduler.step_update(num_updates)
        losses_m.update(loss.item(), input.size(0))
        if batch_idx % 10 == 0:
            print(f"Train: {epoch} [{batch_idx:>4d}/{len(loader)}] Loss: {losses_m.val}")


def validate(model, loader, loss_fn, log_suffix=""):
    losses_m, top1_m = AverageMeter(), AverageMeter()
    model.eval()
    with torch.no_grad():
        for input, target in loader:
            output = model(input)
            loss = loss_fn(output, target)
            acc1 = (output.argmax(1) == target).float().mean() * 100
            losses_m.update(loss.item(), input.size(0))
            top1_m.update(acc1.item(), output.size(0))
    print(f"Test{log_suffix}: Loss: {losses_m.avg} Acc@1: {top1_m.avg:.3f}")
    return OrderedDict([("loss", losses_m.avg), ("top1", top1_m.avg)])


def main():
    torch.manual_seed(42)
    np.random.seed(42)
    model = create_model()
    rate = args.lr * (400 if args.fault == "rate-too-high" else 1)
    optimizer = torch.optim.SGD(
        param_groups_weight_decay(model, 1e-4), lr=rate, momentum=0.9, nesterov=True
    )
    model_ema = ModelEma(model, args.model_ema_decay)
    loader_train = DataLoader(
        create_dataset(1280, 1), batch_size=args.batch_size, shuffle=True, drop_last=True
    )
    loader_eval = DataLoader(create_dataset(300, 2), batch_size=64)
    mixup_fn = Mixup(args.mixup, args.smoothing, 8)
    train_loss_fn = SoftTargetCrossEntropy()
    validate_loss_fn = nn.CrossEntropyLoss()
    updates = len(loader_train)
    scheduler = CosineLRScheduler(optimizer, args.epochs * updates, args.warmup_epochs * updates)
    os.makedirs(args.output, exist_ok=True)
    best = None
    for epoch in range(args.epochs):
        train_one_epoch(
            epoch, model, loader_train, optimizer, train_loss_fn, mixup_fn, scheduler, model_ema
        )
        validate(model, loader_eval, validate_loss_fn)
        metrics = validate(model_ema.module, loader_eval, validate_loss_fn, " (EMA)")
        if best is None or metrics["top1"] > best:
            best = metrics["top1"]
            torch.save(model_ema.module.state_dict(), os.path.join(args.output, "best.pth.tar"))
    print(f"*** Best metric: {best:.3f}")


if __name__ == "__main__":
    main()
