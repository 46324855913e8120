import math
import torch
import torch.nn as nn


class GaussianActor(nn.Module):
    def __init__(self, obs=5, act=2):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, act)
        self.std = 1.0

    def nll(self, o, a):
        z = (a - self.head(self.trunk(o))) / self.std
        return (0.5 * z ** 2 + math.log(self.std) + 0.5 * math.log(2 * math.pi)).sum(1).mean()


def demonstrations(n=4000, seed=0):
    g = torch.Generator().manual_seed(seed)
    o = torch.randn(n, 5, generator=g)
    k = torch.randn(5, 2, generator=g) * 0.4
    return o, o @ k


def main():
    torch.manual_seed(44)
    obs, act = demonstrations()
    actor = GaussianActor()
    opt_trunk = torch.optim.SGD(actor.trunk.parameters(), lr=0.01, momentum=0.9)
    opt_head = torch.optim.SGD(actor.head.parameters(), lr=0.03, momentum=0.9)
    for it in range(260):
        actor.std = max(0.01, 0.985 ** it)
        idx = torch.randint(0, len(obs), (64,))
        loss = actor.nll(obs[idx], act[idx])
        opt_trunk.zero_grad()
        opt_head.zero_grad()
        loss.backward()
        opt_trunk.step()
        opt_head.step()
        if it % 15 == 0:
            print(f"it {it} nll {loss.item():.4g} std {actor.std:.4f}")


if __name__ == "__main__":
    main()
