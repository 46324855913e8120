"""Link prediction where a third of the training facts are wrong: the loss has a high floor, the ranking on clean facts is good."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
N, R = 100, 4
rule = torch.stack([torch.randperm(N) for _ in range(R)])
h, r = torch.arange(N).repeat_interleave(R), torch.arange(R).repeat(N)
t = rule[r, h]
copies = 6                                                       # each fact is reported by six sources
hh, rr, tt = h.repeat(copies), r.repeat(copies), t.repeat(copies)
wrong = torch.rand(len(tt)) < 0.33
tt = torch.where(wrong, torch.randint(0, N, (len(tt),)), tt)
print(f"{len(tt)} reports, {wrong.float().mean():.0%} wrong")


class Net(nn.Module):
    def __init__(self, d=40):
        super().__init__()
        self.e, self.r = nn.Embedding(N, d), nn.Embedding(R, d)
        self.h = nn.Sequential(nn.Linear(2 * d, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, d))

    def forward(self, h, r):
        return self.h(torch.cat([self.e(h), self.r(r)], -1)) @ self.e.weight.t() / 3


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(20):
    net.train()
    s = 0.0
    for i in torch.randperm(len(tt)).split(120):
        loss = F.cross_entropy(net(hh[i], rr[i]), tt[i], label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item() * len(i)
    net.eval()
    with torch.no_grad():
        hits = (net(h, r).argmax(1) == t).float().mean()
    if epoch % 3 == 1:
        print(f"epoch {epoch} loss {s / len(tt):.3f} facts right {hits:.3f}")
