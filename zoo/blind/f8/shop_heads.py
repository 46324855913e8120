"""Multi-task model of a web shop: click prediction, later joined by the spend task."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Shop(nn.Module):
    def __init__(self, users=300, segments=40, dim=12):
        super().__init__()
        self.user = nn.Linear(16, dim)
        self.click = nn.Sequential(nn.Linear(dim, 24), nn.Tanh(), nn.Linear(24, 1))
        self.segment = nn.Embedding(segments, dim)
        self.spend = nn.Linear(dim, 1)

    def forward(self, x):
        return torch.tanh(self.user(x))

    def click_logit(self, h):
        return self.click(h).squeeze(-1)

    def spend_value(self, h, seg):
        return self.spend(h * (1 + self.segment(seg))).squeeze(-1)


class Sessions:
    def __init__(self, seed=29):
        self.g = torch.Generator().manual_seed(seed)
        self.wc = torch.randn(16, generator=self.g)
        self.ws = torch.randn(16, generator=self.g) * 0.4

    def batch(self, n):
        x = torch.randn(n, 16, generator=self.g)
        seg = torch.randint(0, 40, (n,), generator=self.g)
        p = torch.sigmoid(x @ self.wc)
        click = (torch.rand(n, generator=self.g) < p).float()
        spend = x @ self.ws + 0.05 * seg
        return x, seg, click, spend


def train(steps=320, spend_from=150):
    torch.manual_seed(29)
    data = Sessions()
    net = Shop()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3, betas=(0.9, 0.99), eps=0.0)
    log = []
    for step in range(steps):
        x, seg, click, spend = data.batch(48)
        h = net(x)
        loss = F.binary_cross_entropy_with_logits(net.click_logit(h), click)
        if step >= spend_from:
            loss = loss + 0.2 * F.smooth_l1_loss(net.spend_value(h, seg), spend)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append(loss.item())
        if step % 20 == 0:
            print(f"step {step:4d} loss {log[-1]:.4f} average {sum(log[-20:]) / len(log[-20:]):.4f}")
    return net


if __name__ == "__main__":
    train()
