"""A residual classifier under autocast, with GradScaler for float16."""

import common
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the layer makes of x."""
        return x + 0.5 * functional.relu(self.layer(self.norm(x)))


parser = common.parser(steps=1200, lr=1e-3)
parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), required=True)
parser.add_argument("--tf32", action="store_true")
parser.add_argument("--optimizer", choices=("adamw", "sgd"), default="adamw")
parser.add_argument("--no-scaler", action="store_true")
parser.add_argument("--init-scale", type=float, default=65536.0)
parser.add_argument("--growth-interval", type=int, default=2000)
parser.add_argument("--clip", choices=("unscaled", "scaled"))
parser.add_argument("--depth", type=int, default=3)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--input-scale", type=float, default=1.0)
parser.add_argument("--anneal-until", type=int, default=0, help="the temperature is 0 from here on")
parser.add_argument("--poison-at", type=int, default=-1)
parser.add_argument("--keep-gradients", action="store_true")
args = common.start(parser)
if args.tf32:
    torch.set_float32_matmul_precision("high")

inputs, labels = common.clusters(32_000, width=32)
inputs *= args.input_scale
train = TensorDataset(inputs[:30_000], labels[:30_000])
test_inputs, test_labels = inputs[30_000:].to(args.device), labels[30_000:].to(args.device)
loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Linear(32, 128),
    *(Block(128) for _ in range(args.depth)),
    nn.LayerNorm(128),
    nn.Linear(128, 10),
).to(args.device)
if args.optimizer == "adamw":
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
dtype = getattr(torch, args.dtype)
scaler = torch.amp.GradScaler(
    args.device,
    init_scale=args.init_scale,
    growth_interval=args.growth_interval,
    enabled=dtype is torch.float16 and not args.no_scaler,
)


def batches():
    """Yield batches without end."""
    while True:
        yield from loader


data = batches()
losses = common.Losses()
for step in range(args.steps):
    if not args.keep_gradients:
        optimizer.zero_grad()
    temperature = 1.0
    if args.anneal_until:
        temperature = max(0.0, 1.0 - step / args.anneal_until) ** 0.25
    total = torch.zeros((), device=args.device)
    for _ in range(args.accumulate):
        x, y = next(data)
        x, y = x.to(args.device), y.to(args.device)
        if step == args.poison_at:
            x[0, 0] = float("inf")
        with torch.autocast(args.device, dtype, enabled=dtype is not torch.float32):
            logits = model(x)
            loss = functional.cross_entropy(logits / temperature, y) / args.accumulate
        scaler.scale(loss).backward()
        total += loss.detach()
    if args.clip == "unscaled":
        scaler.unscale_(optimizer)
    if args.clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    losses.add(total)

    if step % 200 == 199:
        model.eval()
        with (
            torch.no_grad(),
            torch.autocast(args.device, dtype, enabled=dtype is not torch.float32),
        ):
            validation = functional.cross_entropy(model(test_inputs), test_labels)
        print("validation", step, validation.item().hex())
        model.train()

print("scale", scaler.get_scale())
losses.finish(model)
