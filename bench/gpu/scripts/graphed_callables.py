"""A model whose forward and backward are CUDA graphs, made by make_graphed_callables."""

import common
import torch
from torch import nn
from torch.nn import functional

parser = common.parser(steps=1500, lr=0.05)
args = common.start(parser)

inputs, labels = common.clusters(10_000, width=32)
inputs, labels = inputs.to(args.device), labels.to(args.device)
body = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()).to(args.device)
head = nn.Linear(256, 10).to(args.device)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=args.lr, momentum=0.9)
body = torch.cuda.make_graphed_callables(body, (torch.randn(100, 32, device=args.device),))

losses = common.Losses()
for _ in range(args.steps // 100):
    for chosen in torch.randperm(10_000).to(args.device).split(100):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(head(body(inputs[chosen])), labels[chosen])
        loss.backward()
        optimizer.step()
        losses.add(loss)

losses.finish(body, head)
