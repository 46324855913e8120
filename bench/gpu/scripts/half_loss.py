"""A denoiser under float16 autocast whose loss is a mean in float32 or a sum in float16."""

import common
import torch
from torch import nn
from torch.nn import functional

parser = common.parser(steps=800, lr=1e-3)
parser.add_argument("--half", action="store_true", help="sum the squared error in float16")
args = common.start(parser)

basis = torch.randn(8, 64)
clean = (torch.randn(64_000, 8) @ basis / 8**0.5).to(args.device)
noisy = clean + torch.randn(64_000, 64).to(args.device)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
scaler = torch.amp.GradScaler(args.device)

losses = common.Losses()
for _ in range(args.steps // 4):
    for chosen in torch.randperm(64_000).to(args.device).split(16_000):
        with torch.autocast(args.device, torch.float16):
            restored = model(noisy[chosen])
        if args.half:
            loss = ((restored.half() - clean[chosen].half()) ** 2).sum()
        else:
            loss = functional.mse_loss(restored.float(), clean[chosen])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.add(loss)

losses.finish(model)
