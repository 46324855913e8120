"""A deep network whose activations are checked for NaN: at every layer of every step, or seldom."""

import common
import torch
from torch import Tensor, nn
from torch.nn import functional

parser = common.parser(steps=400, lr=1e-3)
parser.add_argument("--check-every", type=int, default=100, help="steps between two checks")
args = common.start(parser)

WIDTH, DEPTH, BATCH = 1024, 16, 1024
inputs, labels = common.clusters(20 * BATCH, width=WIDTH)
inputs, labels = inputs.to(args.device), labels.to(args.device)


class Net(nn.Module):
    """Residual blocks; a check reads a tensor of the GPU, and so waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor, *, check: bool) -> Tensor:
        """Classify, and raise at the first block whose output is not finite."""
        for block in self.blocks:
            x = x + functional.relu(block(x)) / DEPTH
            if check and not torch.isfinite(x).all():
                raise RuntimeError("not finite")
        return self.head(x)


model = Net().to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
losses, step = common.Losses(), 0
while step < args.steps:
    for chosen in torch.randperm(len(inputs), device=args.device).split(BATCH):
        x, y = inputs[chosen], labels[chosen]
        loss = functional.cross_entropy(model(x, check=step % args.check_every == 0), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.add(loss)
        step += 1

losses.finish(model)
