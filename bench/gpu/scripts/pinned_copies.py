"""Images that reach the GPU through a pinned buffer and non_blocking copies."""

import common
import torch
from torch import nn
from torch.nn import functional

parser = common.parser(steps=200, lr=1e-3)
parser.add_argument("--reuse", action="store_true", help="refill the buffer without waiting")
args = common.start(parser)

BATCH = 1024
inputs, labels = common.clusters(20_000, width=64)
labels = labels.to(args.device)
# Wide enough that the GPU stays behind the CPU and copies wait in its queue.
model = nn.Sequential(
    nn.Linear(64, 4096),
    nn.ReLU(),
    *(layer for _ in range(3) for layer in (nn.Linear(4096, 4096), nn.ReLU())),
    nn.Linear(4096, 10),
).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr / 10)

buffer = torch.empty(BATCH, 64, pin_memory=True)
copied = torch.cuda.Event()
order = torch.cat([torch.randperm(len(inputs)) for _ in range(args.steps * BATCH // 20_000 + 2)])
chosen = order.split(BATCH)
buffer.copy_(inputs[chosen[0]])
losses = common.Losses()
for step in range(args.steps):
    x = buffer.to(args.device, non_blocking=True)
    copied.record()
    y = labels[chosen[step].pin_memory().to(args.device, non_blocking=True)]
    if not args.reuse:
        copied.synchronize()
    buffer.copy_(inputs[chosen[step + 1]])
    loss = functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.add(loss)

losses.finish(model)
