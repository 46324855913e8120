"""A classifier whose weights themselves are float16 or bfloat16."""

import common
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

parser = common.parser(steps=1000, lr=1e-3)
parser.add_argument("--dtype", choices=("float16", "bfloat16"), required=True)
parser.add_argument("--optimizer", choices=("adam", "adamw", "sgd"), required=True)
args = common.start(parser)
dtype = getattr(torch, args.dtype)

inputs, labels = common.clusters(10_000, width=32)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=100, shuffle=True)
model = nn.Sequential(
    nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
).to(args.device, dtype)
if args.optimizer == "sgd":
    optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
elif args.optimizer == "adam":
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

losses = common.Losses()
for _ in range(args.steps // len(loader)):
    for x, y in loader:
        logits = model(x.to(args.device, dtype))
        loss = functional.cross_entropy(logits.float(), y.to(args.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.add(loss)

losses.finish(model)
