import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
device = "cuda" if torch.cuda.is_available() else "cpu"

text = ("the quick brown fox jumps over the lazy dog and runs back home while the rain keeps falling "
        "on the old stone bridge near the river where nobody has walked for many long years ") * 12
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
V, H, T, B = len(chars), 48, 40, 16


class CharRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, H)
        self.i2h = nn.Linear(H, H)
        self.h2h = nn.Linear(H, H, bias=False)
        self.out = nn.Linear(H, V)
        nn.init.orthogonal_(self.h2h.weight)

    def forward(self, idx):
        e = self.i2h(self.emb(idx))
        h = torch.zeros(idx.size(0), H, device=idx.device)
        states = []
        for t in range(idx.size(1)):
            h = F.relu(e[:, t] + self.h2h(h))
            states.append(h)
        return self.out(torch.stack(states, 1))


def batches(n):
    g = torch.Generator().manual_seed(0)
    for _ in range(n):
        s = torch.randint(0, len(data) - T - 1, (B,), generator=g)
        x = torch.stack([data[i:i + T] for i in s])
        y = torch.stack([data[i + 1:i + T + 1] for i in s])
        yield x, y


net = CharRNN().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.9)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.02, total_iters=150)

for step, (x, y) in enumerate(batches(180)):
    x, y = x.to(device), y.to(device)
    logits = net(x)
    loss = F.cross_entropy(logits.reshape(-1, V), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 20 == 0:
        print("step %d  loss %.3f" % (step, loss.item()))
