"""A whole training step captured in one CUDA graph and replayed."""

import common
import torch
from torch import nn
from torch.nn import functional

parser = common.parser(steps=3000, lr=1e-3)
args = common.start(parser)

inputs, labels = common.clusters(10_000, width=32)
inputs, labels = inputs.to(args.device), labels.to(args.device)
model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 10)).to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, capturable=True)
x, y = inputs[:100].clone(), labels[:100].clone()


def step():
    """Train on what x and y hold."""
    optimizer.zero_grad(set_to_none=True)
    loss = functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(11):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    static_loss = step()

losses = common.Losses()
for _ in range(args.steps // 100):
    for chosen in torch.randperm(10_000).to(args.device).split(100):
        x.copy_(inputs[chosen])
        y.copy_(labels[chosen])
        graph.replay()
        losses.add(static_loss)

losses.finish(model)
