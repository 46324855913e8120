"""Stateful LSTM over eight long streams: batches in order, no shuffle, the state goes on (detached) from chunk to chunk."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(8)
STREAMS, LENGTH, CHUNK = 8, 2048, 32


def streams(seed):
    g = torch.Generator().manual_seed(seed)
    bell = torch.rand(STREAMS, LENGTH, generator=g) < 0.03
    x = torch.where(bell, torch.randint(1, 5, (STREAMS, LENGTH), generator=g), 0)
    y = torch.zeros_like(x)
    level = torch.zeros(STREAMS, dtype=torch.long)
    for t in range(LENGTH):
        level = torch.where(x[:, t] > 0, x[:, t] - 1, level)           # the last signal, often many chunks ago
        y[:, t] = level
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 8)
        self.lstm = nn.LSTM(8, 32, batch_first=True)
        self.out = nn.Linear(32, 4)

    def forward(self, x, state):
        h, state = self.lstm(self.emb(x), state)
        return self.out(h), state


x_tr, y_tr = streams(1)
x_va, y_va = streams(2)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=8e-3)


def run(x, y, train):
    state, loss_sum, right = None, 0.0, 0
    net.train(train)
    for t in range(0, LENGTH, CHUNK):
        with torch.set_grad_enabled(train):
            out, state = net(x[:, t:t + CHUNK], state)
            loss = F.cross_entropy(out.flatten(0, 1), y[:, t:t + CHUNK].flatten())
        if train:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
        state = tuple(s.detach() for s in state)
        loss_sum += loss.item()
        right += (out.argmax(-1) == y[:, t:t + CHUNK]).sum().item()
    return loss_sum / (LENGTH // CHUNK), right / x.numel()


for epoch in range(8):
    a, b = run(x_tr, y_tr, True)
    c, d = run(x_va, y_va, False)
    print(f"epoch {epoch:2d} train {a:.4f} acc {b:.3f} val {c:.4f} acc {d:.3f}")
