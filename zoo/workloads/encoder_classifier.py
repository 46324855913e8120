"""Classifies padded token sequences with a transformer encoder, in bfloat16 autocast."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

VOCABULARY, CLASSES, LENGTH, WIDTH, HEADS, DEPTH, PAD = 60, 6, 16, 32, 4, 2, 0


def make_split(size):
    labels = torch.randint(CLASSES, (size,))
    lengths = torch.randint(5, LENGTH + 1, (size, 1))
    tokens = torch.randint(10, VOCABULARY, (size, LENGTH))
    cue = 10 + 8 * labels[:, None] + torch.randint(8, (size, LENGTH))
    tokens = torch.where(torch.rand(size, LENGTH) < 0.5, cue, tokens)
    return TensorDataset(tokens.masked_fill(torch.arange(LENGTH) >= lengths, PAD), labels)


train_set, valid_set = make_split(1920), make_split(400)
train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=100)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2 * WIDTH, WIDTH)
        )

    def attend(self, x, padding):
        q, k, v = (
            each.unflatten(2, (HEADS, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, 2)
        )
        scores = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(padding[:, None, None], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x, padding):
        x = x + self.attend(self.norm1(x), padding)
        return x + self.mlp(self.norm2(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH, padding_idx=PAD)
        self.position = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        padding = tokens == PAD
        x = self.embed(tokens) + self.position
        for layer in self.layers:
            x = layer(x, padding)
        kept = (~padding)[:, :, None]
        pooled = (self.norm(x) * kept).sum(1) / kept.sum(1)
        return self.head(pooled)


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)

for epoch in range(5):
    model.train()
    train_loss = 0.0
    for tokens, labels in train_loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(tokens)
            loss = criterion(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        train_loss += loss.item() / len(train_loader)

    model.eval()
    total = right = 0
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        for tokens, labels in valid_loader:
            logits = model(tokens)
            total += criterion(logits, labels).item() * len(labels)
            right += (logits.argmax(1) == labels).sum().item()
    print(
        f"epoch {epoch}: train {train_loss:.4f} valid {total / len(valid_set):.4f}"
        f" acc {right / len(valid_set):.3f}"
    )
