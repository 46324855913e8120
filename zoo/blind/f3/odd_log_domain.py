import torch
import torch.nn as nn

S, V, T = 5, 12, 15


class LeftRight(nn.Module):
    def __init__(self):
        super().__init__()
        allowed = torch.triu(torch.ones(S, S)) * (torch.tril(torch.ones(S, S), 2))
        self.register_buffer("structure", torch.log(allowed))
        start = torch.zeros(S)
        start[0] = 1
        self.register_buffer("start", torch.log(start))
        self.trans = nn.Parameter(torch.zeros(S, S))
        self.emit = nn.Parameter(torch.randn(S, V) * 0.1)

    def forward(self, obs):
        A = torch.log_softmax(self.trans + self.structure, dim=1)
        B = torch.log_softmax(self.emit, dim=1)
        alpha = self.start + B[:, obs[:, 0]].T + 0.0
        alpha = torch.where(torch.isinf(alpha), torch.full_like(alpha, -1e4), alpha)
        for t in range(1, obs.size(1)):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + A.clamp(min=-1e4), dim=1) + B[:, obs[:, t]].T
        return torch.logsumexp(alpha, dim=1)


def generate(n):
    state = (torch.arange(T) * S // T).expand(n, T)
    return (state * 2 + torch.randint(0, 3, (n, T))) % V


torch.manual_seed(1)
data = generate(800)
model = LeftRight()
opt = torch.optim.Adam(model.parameters(), lr=3e-2)
for step in range(220):
    obs = data[torch.randint(0, 800, (32,))]
    loss = -model(obs).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step} nll per symbol {loss.item() / T:.4f}")
