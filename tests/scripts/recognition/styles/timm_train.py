"""`train_one_epoch` with a scaler class, averaged weights, mixing of batches and meters."""

import argparse
import csv
import os
from collections import OrderedDict
from contextlib import suppress
from copy import deepcopy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class NativeScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)

    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, need_update=True):
        self._scaler.scale(loss).backward()
        if need_update:
            if clip_grad is not None:
                self._scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            self._scaler.step(optimizer)
            self._scaler.update()


class ModelEma(nn.Module):
    def __init__(self, model, decay=0.99):
        super().__init__()
        self.module = deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)


class Mixup:
    def __call__(self, x, target):
        lam = float(torch.distributions.Beta(0.8, 0.8).sample())
        onehot = nn.functional.one_hot(target, 4).float()
        return x * lam + x.flip(0) * (1 - lam), onehot * lam + onehot.flip(0) * (1 - lam)


class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x, target):
        return torch.sum(-target * torch.log_softmax(x, dim=-1), dim=-1).mean()


def train_one_epoch(
    epoch, model, loader, optimizer, loss_fn, args, lr_scheduler=None, amp_autocast=suppress,
    loss_scaler=None, model_ema=None, mixup_fn=None,
):  # fmt: skip
    losses_m = AverageMeter()
    model.train()
    num_updates = epoch * len(loader)
    last_idx = len(loader) - 1
    for batch_idx, (input, target) in enumerate(loader):
        last_batch = batch_idx == last_idx
        input, target = input.to(args.device), target.to(args.device)
        if mixup_fn is not None:
            input, target = mixup_fn(input, target)
        with amp_autocast():
            output = model(input)
            loss = loss_fn(output, target)
        losses_m.update(loss.item(), input.size(0))
        optimizer.zero_grad()
        if loss_scaler is not None:
            loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters())
        else:
            loss.backward()
            optimizer.step()
        if model_ema is not None:
            model_ema.update(model)
        num_updates += 1
        if last_batch or batch_idx % args.log_interval == 0:
            print(f"Train: {epoch} [{batch_idx}/{len(loader)}] Loss: {losses_m.val:#.4g}")
        if lr_scheduler is not None:
            lr_scheduler.step()
    return OrderedDict([("loss", losses_m.avg)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--clip-grad", type=float, default=1.0)
    parser.add_argument("--log-interval", type=int, default=50)
    parser.add_argument("--output", default="output")
    args = parser.parse_args()
    torch.manual_seed(42)
    labels = torch.randint(4, (512,))
    images = torch.randn(512, 3, 8, 8) * 0.3
    images[torch.arange(512), labels % 3, 2 * labels] += 2
    loader_train = DataLoader(
        TensorDataset(images[:400], labels[:400]), 16, shuffle=True, drop_last=True
    )
    loader_eval = DataLoader(TensorDataset(images[400:], labels[400:]), 32)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    model_ema = ModelEma(model)
    for epoch in range(3):
        train_metrics = train_one_epoch(
            epoch, model, loader_train, optimizer, SoftTargetCrossEntropy(), args,
            lr_scheduler=lr_scheduler, loss_scaler=NativeScaler(), model_ema=model_ema,
            mixup_fn=Mixup(),
        )  # fmt: skip
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader_eval)
        os.makedirs(args.output, exist_ok=True)
        with open(os.path.join(args.output, "summary.csv"), "a") as cf:
            csv.writer(cf).writerow([epoch, train_metrics["loss"], right])
        torch.save(model.state_dict(), os.path.join(args.output, "tmp.pth.tar"))
        os.replace(
            os.path.join(args.output, "tmp.pth.tar"), os.path.join(args.output, "last.pth.tar")
        )


if __name__ == "__main__":
    main()
