"""Trains a small causal transformer on text made by a Markov chain."""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

VOCABULARY, CONTEXT, WIDTH, HEADS, DEPTH = 40, 24, 40, 4, 2
EPOCHS, WARMUP, PEAK_LR = 3, 30, 4e-3

chain = (2.5 * torch.randn(VOCABULARY, VOCABULARY)).softmax(1)
tokens = [torch.randint(VOCABULARY, (1760,))]
for _ in range(CONTEXT):
    tokens.append(torch.multinomial(chain[tokens[-1]], 1).squeeze(1))
text = torch.stack(tokens, dim=1)
inputs, targets = text[:, :-1], text[:, 1:]
train_set = TensorDataset(inputs[:1600], targets[:1600])
valid_set = TensorDataset(inputs[1600:], targets[1600:])
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=80)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def attend(self, x):
        q, k, v = (
            each.unflatten(2, (HEADS, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, 2)
        )
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(heads.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def learning_rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    progress = (step - WARMUP) / (EPOCHS * len(train_loader) - WARMUP)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


model = LanguageModel()
matrices = [each for each in model.parameters() if each.ndim > 1]
vectors = [each for each in model.parameters() if each.ndim == 1]
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=PEAK_LR, betas=(0.9, 0.95))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate)

for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for x, y in train_loader:
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        train_loss += loss.item() / len(train_loader)

    model.eval()
    valid_loss = 0.0
    with torch.no_grad():
        for x, y in valid_loader:
            logits = model(x)
            valid_loss += F.cross_entropy(logits.flatten(0, 1), y.flatten()).item()
    print(f"epoch {epoch}: train {train_loss:.4f} valid {valid_loss / len(valid_loader):.4f}")
