"""Bayesian personalised ranking on synthetic implicit feedback."""
import torch
import torch.nn as nn
import torch.nn.functional as F

gen = torch.Generator().manual_seed(99)
torch.manual_seed(99)
NU, NI, K = 200, 120, 8

taste = torch.randn(NU, 5, generator=gen)
style = torch.randn(NI, 5, generator=gen)
affinity = taste @ style.t() + 0.3 * torch.randn(NU, NI, generator=gen)
liked = affinity.topk(16, dim=1).indices[:, torch.randperm(16, generator=gen)]
train_items, test_items = liked[:, :12], liked[:, 12:]
seen = torch.zeros(NU, NI, dtype=torch.bool)
seen[torch.arange(NU)[:, None], train_items] = True


def sample(batch):
    u = torch.randint(0, NU, (batch,))
    pos = train_items[u, torch.randint(0, train_items.size(1), (batch,))]
    neg = torch.randint(0, NI, (batch,))
    clash = seen[u, neg]
    while clash.any():
        neg[clash] = torch.randint(0, NI, (int(clash.sum()),))
        clash = seen[u, neg]
    return u, pos, neg


class BPR(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(NU, K)
        self.item = nn.Embedding(NI, K)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(1)


def recall_at(model, k=20):
    with torch.no_grad():
        score = model.user.weight @ model.item.weight.t()
        score[seen] = -1e9
        top = score.topk(k, dim=1).indices
    return (test_items[:, :, None] == top[:, None, :]).any(2).float().mean().item()


def main():
    model = BPR()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.3)
    for step in range(401):
        u, pos, neg = sample(256)
        x_pos, x_neg = model(u, pos), model(u, neg)
        reg = 1e-3 * (model.user(u).pow(2) + model.item(pos).pow(2) + model.item(neg).pow(2)).sum(1).mean()
        loss = -F.logsigmoid(x_pos - x_neg).mean() + reg
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print("step %3d  bpr loss %.4f  recall@20 %.3f" % (step, loss.item(), recall_at(model)))


main()
