"""Length-bucketed speech batches (sorted by duration, fixed buckets), loss summed over the batch."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence

torch.manual_seed(31)
MELS, WORDS = 12, 5
patterns = torch.randn(WORDS, 2, MELS)


def utter(w, g):
    t = int(torch.randint(8, 26, (1,), generator=g))
    half = torch.arange(t) >= t // 2
    return patterns[w][half.long()] + 1.8 * torch.randn(t, MELS, generator=g)


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    items = [(utter(i % WORDS, g), i % WORDS) for i in range(n)]
    return sorted(items, key=lambda it: -it[0].shape[0])


def to_batches(items, size):
    out = []
    for i in range(0, len(items), size):
        part = items[i:i + size]
        out.append((pad_sequence([x for x, _ in part]), torch.tensor([len(x) for x, _ in part]), torch.tensor([y for _, y in part])))
    return out


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(MELS, 24, 3, padding=1)
        self.rnn = nn.GRU(24, 24)
        self.cls = nn.Linear(24, WORDS)

    def forward(self, x, lens):
        h = torch.relu(self.conv(x.permute(1, 2, 0))).permute(2, 0, 1)
        _, last = self.rnn(pack_padded_sequence(h, lens))
        return self.cls(last[0])


train, test = to_batches(corpus(300, 1), 20), to_batches(corpus(100, 2), 50)
net = Model()
crit = nn.CrossEntropyLoss(reduction="sum")
opt = torch.optim.SGD(net.parameters(), lr=4e-3, momentum=0.9)
for ep in range(12):
    s = 0.0
    for k in torch.randperm(len(train)).tolist():
        x, lens, y = train[k]
        loss = crit(net(x, lens), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    with torch.no_grad():
        ok = sum((net(x, l).argmax(1) == y).sum().item() for x, l, y in test)
    print("epoch", ep, "summed loss per batch %.2f" % (s / len(train)), "test acc %.3f" % (ok / 100))
