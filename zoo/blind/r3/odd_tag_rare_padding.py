"""Tag misspelt words in short messages: very uneven lengths, 3% positive tokens."""
import random
import torch
from torch import nn

random.seed(40)
torch.manual_seed(40)
CODES = 40


def message():
    n = random.choice([3, 4, 4, 5, 6, 24])
    w = [random.randint(1, CODES) for _ in range(n)]
    # token 7 is wrong only if 3 came right before or after it
    if random.random() < 0.35 and n > 3:
        k = random.randrange(n - 1)
        w[k:k + 2] = random.choice([[3, 7], [7, 3], [7, 5]])
    y = [int(t == 7 and (3 in w[max(0, i - 1):i] or 3 in w[i + 1:i + 2])) for i, t in enumerate(w)]
    return w, y


def to_batch(items):
    longest = max(len(w) for w, _ in items)
    x = torch.tensor([w + [0] * (longest - len(w)) for w, _ in items])
    y = torch.tensor([t + [0] * (longest - len(t)) for _, t in items]).float()
    return x, y, x > 0


class BiLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(CODES + 1, 16, padding_idx=0)
        self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(48, 1)

    def forward(self, x):
        return self.fc(self.rnn(self.emb(x))[0]).squeeze(-1)


train, test = [message() for _ in range(1500)], [message() for _ in range(400)]
rate = sum(map(sum, (y for _, y in train))) / sum(len(y) for _, y in train)
net = BiLSTM()
nn.init.constant_(net.fc.bias, -3.5)
bce = nn.BCEWithLogitsLoss(reduction="none")
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
print(f"positive tokens {100 * rate:.1f}%")
for epoch in range(5):
    random.shuffle(train)
    total = 0.0
    for i in range(0, len(train), 30):
        x, y, mask = to_batch(train[i:i + 30])
        loss = (bce(net(x), y) * mask).sum() / mask.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 50
    x, y, mask = to_batch(test)
    with torch.no_grad():
        hit = (net(x) > 0) & mask
    tp = (hit & (y > 0)).sum().item()
    print(f"epoch {epoch} loss {total:.5f} precision {tp / max(1, hit.sum().item()):.3f} recall {tp / y.sum().item():.3f}")
