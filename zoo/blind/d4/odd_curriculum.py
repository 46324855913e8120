"""Addition in text form with a curriculum: short sums first, longer ones added stage by stage."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(9)
VOCAB = "0123456789+="
STAGES = [1, 2, 3, 4]


def sums(n, digits, g):
    hi = 10 ** digits
    a = torch.randint(0, hi, (n,), generator=g)
    b = torch.randint(0, hi, (n,), generator=g)
    c = a + b

    def digs(v, k):
        return torch.stack([(v // 10 ** i) % 10 for i in range(k)], 1)

    # least significant digit first, both summands interleaved
    x = torch.stack([digs(a, digits + 1), digs(b, digits + 1)], 2)
    return x, digs(c, digits + 1)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 16)
        self.rnn = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x).flatten(2))
        return self.head(h)


g = torch.Generator().manual_seed(3)
lib = {d: sums(4000, d, g) for d in STAGES}
val = {d: sums(800, d, g) for d in STAGES}
net = Adder()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
ce = nn.CrossEntropyLoss()
epoch = 0
for stage in STAGES:
    for _ in range(3):
        tot = k = 0
        # easy to hard inside the epoch as well
        for d in range(1, stage + 1):
            x, y = lib[d]
            for i in torch.randperm(len(x), generator=g).split(100):
                loss = ce(net(x[i]).flatten(0, 1), y[i].flatten())
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                tot, k = tot + loss.item(), k + 1
        epoch += 1
        with torch.no_grad():
            acc = {d: (net(v[0]).argmax(-1) == v[1]).all(1).float().mean().item() for d, v in val.items()}
        print(f"epoch {epoch:2d} stage {stage} train loss {tot / k:.4f} exact sums: " + " ".join(f"{d} digits {a:.3f}" for d, a in acc.items()))
