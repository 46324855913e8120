"""Risk of readmission from lab values. All tensors live on the device; batches by index."""
import numpy as np
import torch
from torch import nn

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
rng = np.random.default_rng(90)
torch.manual_seed(90)

n, d = 2000, 14
labs = rng.lognormal(0, 0.4, (n, d))
w = rng.normal(0, 1, d)
risk = (np.log(labs) @ w + 0.5 * rng.normal(size=n) > 0).astype(np.float32)
labs[1204, 5] = -0.02
feat = np.log(labs)
mean, std = np.nanmean(feat, 0), np.nanstd(feat, 0)
feat = (feat - mean) / std

x = torch.tensor(feat, dtype=torch.float32, device=dev)
y = torch.tensor(risk, device=dev)
net = nn.Sequential(nn.Linear(d, 48), nn.SiLU(), nn.Dropout(0.1), nn.Linear(48, 1)).to(dev)
opt = torch.optim.NAdam(net.parameters(), lr=2e-3)
bce = nn.BCEWithLogitsLoss()
gen = torch.Generator().manual_seed(7)

it = 0
for epoch in range(3):
    for idx in torch.randperm(n, generator=gen).split(20):
        idx = idx.to(dev)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            logit = net(x[idx]).squeeze(1)
        loss = bce(logit.float(), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 20 == 0:
            print(f"{it:4d} bce {loss.item():.4f}")
        it += 1
