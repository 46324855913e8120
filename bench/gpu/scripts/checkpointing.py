"""Blocks under activation checkpointing, reentrant or not."""

import warnings

import common
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

parser = common.parser(steps=900, lr=1e-3)
parser.add_argument("--reentrant", action="store_true")
parser.add_argument("--raw-inputs", action="store_true", help="checkpoint what needs no gradient")
args = common.start(parser)
if args.raw_inputs:  # torch warns of it, and people overlook it
    warnings.filterwarnings("ignore", "None of the inputs have requires_grad=True")

WIDTH = 64
inputs, labels = common.clusters(9_000, width=WIDTH)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=90, shuffle=True)


class Net(nn.Module):
    """An embedding, checkpointed blocks, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Identity() if args.raw_inputs else nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(4)
        )
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        x = self.embed(x)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=args.reentrant)
        return self.head(x)


model = Net().to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
losses = common.Losses()
for _ in range(args.steps // len(loader)):
    for x, y in loader:
        loss = functional.cross_entropy(model(x.to(args.device)), y.to(args.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.add(loss)

losses.finish(model)
