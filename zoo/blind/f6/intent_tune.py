import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)
VOCAB, DIM, INTENTS, LENGTH, BATCH, STEPS, UNFREEZE = 400, 24, 6, 10, 32, 300, 180

gen = torch.Generator().manual_seed(12)
keyword = torch.randint(0, VOCAB, (INTENTS, 12), generator=gen)


def utterances():
    y = torch.randint(0, INTENTS, (BATCH,), generator=gen)
    ids = torch.randint(0, VOCAB, (BATCH, LENGTH), generator=gen)
    for slot in range(3):
        col = torch.randint(0, 12, (BATCH,), generator=gen)
        ids[:, slot] = keyword[y, col]
    return ids, y


class Intent(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.body = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, INTENTS))

    def forward(self, ids):
        return self.body(self.emb(ids).mean(1))


model = Intent()
model.emb.weight.requires_grad_(False)
head_opt = torch.optim.Adam(model.body.parameters(), lr=3e-3)
emb_opt = None
losses = []
for step in range(STEPS):
    if step == UNFREEZE:
        model.emb.weight.requires_grad_(True)
        emb_opt = torch.optim.RMSprop(model.emb.parameters(), lr=1e-4, alpha=0.9, eps=0.0)
    ids, y = utterances()
    loss = F.cross_entropy(model(ids), y)
    model.zero_grad()
    loss.backward()
    head_opt.step()
    if emb_opt is not None:
        emb_opt.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
