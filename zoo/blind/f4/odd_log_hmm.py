import torch
import torch.nn as nn

torch.manual_seed(4)
S, O, T = 5, 8, 60


class LeftRightHMM(nn.Module):
    """Left-to-right model; impossible moves carry a log-probability of minus infinity."""

    def __init__(self):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(S, S))
        self.emit = nn.Parameter(torch.randn(S, O))
        allowed = torch.ones(S, S).triu() - torch.ones(S, S).triu(2)
        self.register_buffer("allowed", allowed.bool())

    def forward(self, obs):
        A = self.trans.masked_fill(~self.allowed, float("-inf")).log_softmax(1)
        E = self.emit.log_softmax(1)
        alpha = torch.full((obs.shape[0], S), -1e30)
        alpha[:, 0] = 0.0
        alpha = alpha + E[:, obs[:, 0]].t()
        for t in range(1, obs.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + A, 1) + E[:, obs[:, t]].t()
        return torch.logsumexp(alpha, 1)


gen_emit = torch.softmax(2 * torch.randn(S, O), 1)


def sample(n):
    z = torch.zeros(n, dtype=torch.long)
    out = []
    for _ in range(T):
        out.append(torch.multinomial(gen_emit[z], 1)[:, 0])
        z = (z + (torch.rand(n) < 0.08).long()).clamp(max=S - 1)
    return torch.stack(out, 1)


hmm = LeftRightHMM()
opt = torch.optim.Adam(hmm.parameters(), lr=0.05)
for step in range(90):
    loss = -hmm(sample(24)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(f"step {step} neg log likelihood {loss.item():.3f}")
