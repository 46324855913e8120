import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast

device = "cuda" if torch.cuda.is_available() else "cpu"


class Tagger(nn.Module):
    def __init__(self, vocab=80, dim=32, tags=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(3 * dim, 64)
        self.out = nn.Linear(64, tags)

    def forward(self, ids):
        e = self.emb(ids)
        left = torch.roll(e, 1, 1)
        right = torch.roll(e, -1, 1)
        return self.out(torch.tanh(self.mix(torch.cat([left, e, right], -1))))


def corpus(n=1024, length=10, vocab=80, tags=6):
    ids = torch.randint(0, vocab, (n, length))
    tag = (ids // 14 + (torch.roll(ids, 1, 1) > 40).long()) % tags
    return ids, tag


def train():
    torch.manual_seed(23)
    ids, tag = corpus()
    ids, tag = ids.to(device), tag.to(device)
    model = Tagger().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = GradScaler(device, init_scale=2.0 ** 12, growth_interval=10)
    criterion = nn.CrossEntropyLoss()
    for step in range(300):
        j = torch.randperm(len(ids), device=device)[:32]
        optimizer.zero_grad()
        with autocast(device, dtype=torch.float16):
            logits = model(ids[j])
            loss = criterion(logits.flatten(0, 1), tag[j].flatten())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scaler.update()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


train()
