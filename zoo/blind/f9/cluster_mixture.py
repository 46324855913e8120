import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(141)


def shops(n=2000):
    centres = torch.tensor([[-2.0, 0.0], [2.0, 0.5], [0.0, 3.0], [0.5, -3.0]])
    which = torch.randint(len(centres), (n,))
    return centres[which] + 0.6 * torch.randn(n, 2)


class Mixture(nn.Module):
    def __init__(self, parts=6):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(parts, 2) * 2.5)
        self.log_std = nn.Parameter(torch.zeros(parts, 2))
        self.logit = nn.Parameter(torch.zeros(parts))

    def joint(self, x):
        z = (x[:, None, :] - self.mean) / self.log_std.exp()
        log_n = -0.5 * z.pow(2).sum(-1) - self.log_std.sum(-1) - math.log(2 * math.pi)
        return torch.log_softmax(self.logit, 0) + log_n

    def forward(self, x):
        return -torch.logsumexp(self.joint(x), dim=1).mean()

    @torch.no_grad()
    def move_centres(self, x):
        owner = self.joint(x).argmax(1)
        share = nn.functional.one_hot(owner, len(self.mean)).float()
        count = share.sum(0).unsqueeze(1)
        self.mean.copy_(share.T @ x / count)


def main():
    x = shops()
    model = Mixture()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(900):
        batch = x[torch.randint(len(x), (160,))]
        loss = model(batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 29:
            model.move_centres(x[torch.randint(len(x), (400,))])
        if step % 30 == 0:
            weight = torch.softmax(model.logit.detach(), 0)
            print(f"step {step} nll {loss.item():.4f} smallest part {weight.min().item():.3f}")


if __name__ == "__main__":
    main()
