"""Alignment-free labelling: forward algorithm in the log domain, full of -inf on purpose."""
import torch
import torch.nn as nn

torch.manual_seed(14)
torch.set_num_threads(1)

FEATS, LABELS, T, BATCH, STEPS = 12, 5, 16, 12, 160
NEG_INF = float("-inf")


def emit_table():
    return torch.randn(LABELS, FEATS, generator=torch.Generator().manual_seed(16))


def draw(table):
    """labels in order, each held for some frames"""
    words, frames = [], []
    for _ in range(BATCH):
        n = int(torch.randint(2, 5, (1,)))
        lab = torch.randperm(LABELS)[:n]
        cuts = torch.randperm(T - 1)[: n - 1].sort().values + 1
        held = torch.diff(torch.cat([torch.tensor([0]), cuts, torch.tensor([T])]))
        frames.append(table[lab.repeat_interleave(held)] + 0.8 * torch.randn(T, FEATS))
        words.append(lab)
    return torch.stack(frames), words


class Net(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATS, hidden), nn.ReLU(), nn.Linear(hidden, LABELS))

    def forward(self, x):
        return torch.log_softmax(self.net(x), -1)


def sequence_nll(logp, lab):
    """sum over all monotone alignments: stay or move on by one"""
    n = len(lab)
    never = torch.full((1,), NEG_INF)
    alpha = logp[0, lab[:1]]
    for t in range(1, logp.shape[0]):
        stay = torch.cat([alpha, never]) if len(alpha) < n else alpha
        move = torch.cat([never, alpha])[:len(stay)]
        alpha = torch.logsumexp(torch.stack([stay, move]), 0) + logp[t, lab[:len(stay)]]
    return -alpha[-1] / logp.shape[0]


def main():
    table = emit_table()
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for step in range(STEPS):
        x, words = draw(table)
        logp = net(x)
        loss = torch.stack([sequence_nll(lp, w) for lp, w in zip(logp, words)]).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if step % 10 == 0:
            print(f"step {step} nll per frame {loss.item():.4f}")


if __name__ == "__main__":
    main()
