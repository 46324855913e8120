"""A loop with Accelerate: prepare, accumulate, backward, gather."""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
args = parser.parse_args()
set_seed(42)


def split(count, seed):
    centers = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 5, (count,), generator=generator)
    return TensorDataset(centers[labels] + torch.randn(count, 16, generator=generator), labels)


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    train_dataloader = DataLoader(split(1280, 1), batch_size=16, shuffle=True)
    eval_dataloader = DataLoader(split(320, 2), batch_size=64)
    model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 5))
    rate = 5.0 if args.fault == "rate-too-high" else 3e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=160)
    criterion = nn.CrossEntropyLoss()
    model, optimizer, train_dataloader, eval_dataloader, scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, scheduler
    )
    for epoch in range(4):
        model.train()
        total = 0.0
        for step, (inputs, targets) in enumerate(train_dataloader):
            with accelerator.accumulate(model):
                loss = criterion(model(inputs), targets)
                total += loss.item() / 2
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                accelerator.print(f"epoch {epoch} step {step} loss {total}")
                total = 0.0
        model.eval()
        losses = []
        for inputs, targets in eval_dataloader:
            with torch.no_grad():
                loss = criterion(model(inputs), targets)
            losses.append(accelerator.gather_for_metrics(loss.repeat(len(inputs))))
        accelerator.print(f"epoch {epoch}: eval_loss {torch.cat(losses).mean().item()}")


if __name__ == "__main__":
    main()
