"""Streaming keyword model: long recordings are read in chunks, state carried over and cut, one optimizer step per recording batch."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(13)
B, T, CH, MEL, C = 16, 48, 12, 10, 4
tones = torch.randn(C, MEL) * 1.2


def record(b):
    """Label at each frame = last tone burst heard so far."""
    y = torch.zeros(b, T, dtype=torch.long)
    x = 0.5 * torch.randn(b, T, MEL)
    cur = torch.randint(0, C, (b,))
    for t in range(T):
        new = (torch.rand(b) < 0.1) | torch.tensor(t == 0)
        cur = torch.where(new, torch.randint(0, C, (b,)), cur)
        x[:, t] += new[:, None].float() * tones[cur]
        y[:, t] = cur
    return x, y


class Stream(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(MEL, 24, 1)
        self.gru = nn.GRU(24, 32, batch_first=True)
        self.fc = nn.Linear(32, C)

    def forward(self, x, state=None):
        h = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        out, state = self.gru(h, state)
        return self.fc(out), state


net = Stream()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
pool = [record(B) for _ in range(30)]
held = record(64)
for it in range(125):
    x, y = pool[it % len(pool)]
    opt.zero_grad()
    state, total = None, 0.0
    for a in range(0, T, CH):
        logits, state = net(x[:, a:a + CH], state)
        part = F.cross_entropy(logits.flatten(0, 1), y[:, a:a + CH].flatten()) / (T // CH)
        part.backward()
        state = state.detach()
        total += part.item()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    if it % 25 == 24:
        with torch.no_grad():
            acc = (net(held[0])[0].argmax(-1) == held[1]).float().mean().item()
        print(f"it {it + 1} loss {total:.3f} frame acc {acc:.3f}")
