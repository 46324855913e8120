import torch
from torch import nn

torch.manual_seed(9)


def make(n, g, docs=10, dim=8):
    x = torch.randn(n, docs, dim, generator=g)
    util = 1.2 * x[..., 0] + x[..., 1].abs() - 0.8 * x[..., 2] + 0.2 * torch.randn(n, docs, generator=g)
    return x, (util > 1.0).float() + (util > 2.0).float()


def approx_ndcg(scores, rel, tau=0.3):
    diff = (scores[:, None, :] - scores[:, :, None]) / tau
    rank = 1 + torch.sigmoid(diff).sum(-1) - 0.5
    gain = 2 ** rel - 1
    dcg = (gain / torch.log2(rank + 1)).sum(1)
    best = gain.sort(dim=1, descending=True).values
    idcg = (best / torch.log2(torch.arange(scores.shape[1]) + 2.0)).sum(1)
    keep = idcg > 0
    return (dcg[keep] / idcg[keep]).mean()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 32)
        self.b = nn.Linear(32, 1, bias=False)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))[..., 0]


g = torch.Generator().manual_seed(9)
xt, rt = make(320, g)
xv, rv = make(100, g)
net = Net()
opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
for epoch in range(15):
    tot, cnt = 0.0, 0
    for idx in torch.randperm(len(xt)).split(16):
        loss = -approx_ndcg(net(xt[idx]), rt[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        tot, cnt = tot + loss.item(), cnt + 1
    if epoch % 3 == 2:
        with torch.no_grad():
            print(f"epoch {epoch + 1}: loss {tot / cnt:.4f}, valid soft ndcg {approx_ndcg(net(xv), rv, tau=0.01):.4f}")
