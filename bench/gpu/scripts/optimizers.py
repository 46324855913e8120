"""A regression with fused, foreach and capturable optimizers."""

import common
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

parser = common.parser(steps=1200, lr=1e-3)
parser.add_argument("--optimizer", required=True)
parser.add_argument("--keep-gradients", action="store_true")
args = common.start(parser)

teacher = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
inputs = torch.randn(10_000, 16)
with torch.no_grad():
    targets = teacher(inputs)
targets = (targets - targets.mean()) / targets.std() + 0.1 * torch.randn(10_000, 1)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=100, shuffle=True)

model = nn.Sequential(
    nn.Linear(16, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1)
).to(args.device)
parameters = model.parameters()
if args.optimizer == "adamw-fused":
    optimizer = torch.optim.AdamW(parameters, lr=args.lr, fused=True)
elif args.optimizer == "sgd-foreach":
    optimizer = torch.optim.SGD(parameters, lr=args.lr, momentum=0.9, foreach=True)
else:
    optimizer = torch.optim.Adam(parameters, lr=args.lr, capturable=True)

losses = common.Losses()
for _ in range(args.steps // len(loader)):
    for x, y in loader:
        loss = functional.mse_loss(model(x.to(args.device)), y.to(args.device))
        if not args.keep_gradients:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.add(loss)

losses.finish(model)
