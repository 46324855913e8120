"""Two models trained together on two streams, with batches copied on a third."""

import common
import torch
from torch import nn
from torch.nn import functional

parser = common.parser(steps=900, lr=1e-3)
parser.add_argument("--forget", action="store_true", help="optimize only the first model")
args = common.start(parser)

inputs, labels = common.clusters(9_000, width=32)
inputs, labels = inputs.pin_memory(), labels.pin_memory()


def classifier() -> nn.Module:
    """Return a new model."""
    return nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 10)).to(args.device)


first, second = classifier(), classifier()
trained = [*first.parameters()] if args.forget else [*first.parameters(), *second.parameters()]
optimizer = torch.optim.Adam(trained, lr=args.lr)
copies, side = torch.cuda.Stream(), torch.cuda.Stream()
main = torch.cuda.current_stream()


def fetch(chosen):
    """Copy a batch on the stream of copies."""
    with torch.cuda.stream(copies):
        x = inputs[chosen].pin_memory().to(args.device, non_blocking=True)
        y = labels[chosen].pin_memory().to(args.device, non_blocking=True)
    return x, y


losses = common.Losses()
for _ in range(args.steps // 100):
    order = torch.randperm(9_000).split(90)
    following = fetch(order[0])
    for n in range(len(order)):
        main.wait_stream(copies)
        x, y = following
        x.record_stream(main)
        y.record_stream(main)
        if n + 1 < len(order):
            following = fetch(order[n + 1])
        optimizer.zero_grad()
        second.zero_grad()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            x.record_stream(side)
            y.record_stream(side)
            second_loss = functional.cross_entropy(second(x), y)
        first_loss = functional.cross_entropy(first(x), y)
        main.wait_stream(side)
        second_loss.record_stream(main)
        loss = first_loss + second_loss
        loss.backward()
        optimizer.step()
        losses.add(loss)

losses.finish(first, second)
