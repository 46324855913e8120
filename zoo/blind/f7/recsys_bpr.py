"""Matrix factorisation with BPR on a chronological log of interactions."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class InteractionLog:
    """Users sign up over time: early interactions come from the first accounts only."""

    def __init__(self, users=120, items=60, steps=400, batch=512, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.users, self.items, self.steps, self.batch = users, items, steps, batch
        self.group = torch.randint(0, 6, (users,), generator=self.g)
        self.topic = torch.randint(0, 6, (items,), generator=self.g)

    def __iter__(self):
        for t in range(self.steps):
            active = 60 if t < 180 else 60 + int((t - 180) * 0.25)
            u = torch.randint(0, active, (self.batch,), generator=self.g)
            cand = torch.randint(0, self.items, (self.batch, 12), generator=self.g)
            match = (self.topic[cand] == self.group[u].unsqueeze(1)).float()
            pick = (match + 0.1 * torch.rand(match.shape, generator=self.g)).argmax(1)
            pos = cand.gather(1, pick.unsqueeze(1)).squeeze(1)
            neg = torch.randint(0, self.items, (self.batch,), generator=self.g)
            yield u, pos, neg


class Factors(nn.Module):
    def __init__(self, users, items, dim=16):
        super().__init__()
        self.u = nn.Embedding(users, dim)
        self.v = nn.Embedding(items, dim)
        self.bias = nn.Embedding(items, 1)
        nn.init.normal_(self.u.weight, std=0.1)
        nn.init.normal_(self.v.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        return (self.u(u) * self.v(i)).sum(-1) + self.bias(i).squeeze(-1)


def main():
    torch.manual_seed(1)
    log = InteractionLog()
    model = Factors(log.users, log.items)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, eps=0.0)
    ema = 0.7
    for step, (u, pos, neg) in enumerate(log):
        diff = model(u, pos) - model(u, neg)
        loss = -F.logsigmoid(diff).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema = 0.95 * ema + 0.05 * loss.item()
        if step % 20 == 0:
            print(f"step {step} bpr {ema:.4f} auc {(diff > 0).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
