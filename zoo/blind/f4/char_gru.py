import torch
import torch.nn as nn

torch.manual_seed(29)

words = "the of and to in a is that for it as was with be by on not he his but at are this have".split()
g = torch.Generator().manual_seed(2)
text = " ".join(words[i] for i in torch.randint(0, len(words), (9000,), generator=g).tolist())
cut = int(len(text) * 0.62)
text = text[:cut] + " see page 7 & following @ end " + text[cut:]
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
data = torch.tensor([stoi[c] for c in text])

B, T = 16, 24
n_batches = (len(data) - 1) // (B * T)


class CharGRU(nn.Module):
    def __init__(self, v, h=48):
        super().__init__()
        self.emb = nn.Embedding(v, 24)
        self.gru = nn.GRU(24, h, batch_first=True)
        self.out = nn.Linear(h, v)

    def forward(self, x):
        h, _ = self.gru(self.emb(x))
        return self.out(h)


model = CharGRU(len(vocab))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, eps=0.0)
criterion = nn.CrossEntropyLoss()
for b in range(n_batches):
    chunk = data[b * B * T:(b + 1) * B * T + 1]
    x, y = chunk[:-1].view(B, T), chunk[1:].view(B, T)
    loss = criterion(model(x).reshape(-1, len(vocab)), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if b % 5 == 0:
        print(f"batch {b}/{n_batches} loss {loss.item():.4f}")
