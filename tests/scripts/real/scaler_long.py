"""A small network trained for 9,000 iterations with autocast and GradScaler on the CPU."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=9000)
parser.add_argument("--broken-from", type=int, default=7000)
parser.add_argument("--fault", default="")
args = parser.parse_args()

torch.manual_seed(0)
inputs = torch.randn(512, 8)
targets = torch.sin(inputs.sum(1, keepdim=True)) + 0.1 * torch.randn(512, 1)

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", growth_interval=500)

for iteration in range(args.iterations):
    index = torch.randint(0, 512, (16,))
    x, y = inputs[index], targets[index]
    if args.fault == "nan-late" and iteration >= args.broken_from:
        x = x / 0.0 * 0.0  # a sensor that went dead is divided by its own range
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(x)
    loss = nn.functional.mse_loss(output.float(), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if iteration % 100 == 0:
        print(f"iteration {iteration} loss {loss.item()} scale {scaler.get_scale()}")
