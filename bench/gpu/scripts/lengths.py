"""Sequences of rising length on a GPU whose memory holds little more than the longest batch."""

import common
import torch
from torch import Tensor, nn
from torch.nn import functional

parser = common.parser(steps=336, lr=1e-3)
parser.add_argument("--pad", type=int, default=512, help="lengths are padded to a multiple of it")
parser.add_argument("--memory", type=float, default=2.1, help="GiB that the process may use")
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--batch", type=int, default=32)
args = common.start(parser)

SHORTEST, LONGEST, DEPTH, FEATURES, CLASSES = 68, 512, 8, 64, 10
if args.device == "cuda":
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(args.memory * 2**30 / total)
centres = torch.randn(CLASSES, FEATURES, device=args.device)


class Net(nn.Module):
    """Residual blocks at every position, and a head on their mean over the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(FEATURES, args.width)
        self.blocks = nn.ModuleList(nn.Linear(args.width, args.width) for _ in range(DEPTH))
        self.head = nn.Linear(args.width, CLASSES)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Classify sequences."""
        x = self.embed(x)
        for block in self.blocks:
            x = x + functional.relu(block(x)) / DEPTH
        return self.head((x * mask).sum(1) / mask.sum(1))


def batch(length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return sequences of some length, padded, with their mask and labels."""
    padded = -(-length // args.pad) * args.pad
    labels = torch.randint(CLASSES, (args.batch,), device=args.device)
    noise = torch.randn(args.batch, padded, FEATURES, device=args.device)
    mask = (torch.arange(padded, device=args.device) < length).float()[None, :, None]
    inputs = (0.1 * centres[labels][:, None] + noise) * mask
    return inputs, mask.expand(args.batch, padded, 1), labels


model = Net().to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
losses = common.Losses()
for step in range(args.steps):
    length = SHORTEST + (LONGEST - SHORTEST) * step // (args.steps - 1) // 4 * 4
    x, mask, y = batch(length)
    loss = functional.cross_entropy(model(x, mask), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.add(loss)

losses.finish(model)
