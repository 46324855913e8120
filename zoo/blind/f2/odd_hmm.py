# left-to-right HMM trained by gradient on the forward algorithm (log space)
import torch

torch.manual_seed(56)
S, O, T = 4, 6, 15
NEG = float("-inf")
allowed = torch.eye(S, dtype=torch.bool) | torch.diag(torch.ones(S - 1), 1).bool()
start = torch.full((S,), NEG)
start[0] = 0.0


class HMM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trans = torch.nn.Parameter(torch.randn(S, S) * 0.1)
        self.emit = torch.nn.Parameter(torch.randn(S, O) * 0.5)

    def forward(self, obs):
        A = self.trans.masked_fill(~allowed, NEG).log_softmax(1)
        B = self.emit.log_softmax(1)
        alpha = start + B[:, obs[:, 0]].t()
        for t in range(1, obs.size(1)):
            k = min(t, S - 1) + 1
            prev = alpha[:, :min(t - 1, S - 1) + 1]
            scores = prev[:, :, None] + A[None, :prev.size(1), :k]
            alpha = torch.logsumexp(scores, 1) + B[:k, obs[:, t]].t()
        return torch.logsumexp(alpha, 1)


def sequences(n):
    dwell = torch.rand(n, T) < 0.3
    state = dwell.cumsum(1).clamp(max=S - 1)
    noise = torch.rand(n, T) < 0.15
    return torch.where(noise, torch.randint(0, O, (n, T)), state + 1)


hmm = HMM()
opt = torch.optim.Adam(hmm.parameters(), lr=0.03)
best = float("inf")
for it in range(200):
    loss = -hmm(sequences(32)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    best = min(best, loss.item())
    if it % 20 == 0:
        print(f"it {it} nll {loss.item():.4f} best {best:.4f}")
