import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(33)
VOCAB = 400
device = "cuda" if torch.cuda.is_available() else "cpu"


class TextNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, 24)
        self.hidden = nn.Linear(24, 48)
        self.classifier = nn.Linear(48, 4)

    def forward(self, ids):
        h = self.embedding(ids).mean(1)
        return self.classifier(torch.tanh(self.hidden(h)))


def corpus(n):
    y = torch.randint(0, 4, (n,))
    topic = torch.randint(0, 100, (n, 10)) + 100 * y[:, None]
    noise = torch.randint(0, VOCAB, (n, 10))
    keep = torch.rand(n, 10) < 0.8
    return torch.where(keep, topic, noise), y


X, Y = (t.to(device) for t in corpus(4000))
model = TextNet().to(device)
for p in model.embedding.parameters():
    p.requires_grad_(False)

opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=0.0)
UNFREEZE_AT = 130

for step in range(260):
    if step == UNFREEZE_AT:
        for p in model.embedding.parameters():
            p.requires_grad_(True)
        print("embedding unfrozen")
    i = torch.randint(0, len(X), (32,), device=device)
    logits = model(X[i])
    loss = F.cross_entropy(logits, Y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        acc = (logits.argmax(1) == Y[i]).float().mean()
        print(f"step {step} loss {loss.item():.4f} acc {acc:.3f}")
