"""A vision transformer on small images, written with einsum-free plain layers."""

import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Vision transformer")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--save-model", action="store_true")
parser.add_argument("--fault", default=os.environ.get("FAULT", ""))
args = parser.parse_args()
torch.manual_seed(0)


class PatchExtractor(nn.Module):
    def __init__(self, patch_size=4):
        super().__init__()
        self.patch_size = patch_size

    def forward(self, x):
        b, c, h, w = x.shape
        p = self.patch_size
        x = x.unfold(2, p, p).unfold(3, p, p)
        return x.permute(0, 2, 3, 1, 4, 5).reshape(b, (h // p) * (w // p), c * p * p)


class InputEmbedding(nn.Module):
    def __init__(self, dim=32, patches=9):
        super().__init__()
        self.patches = PatchExtractor()
        self.projection = nn.Linear(16, dim)
        self.class_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embedding = nn.Parameter(0.02 * torch.randn(1, patches + 1, dim))

    def forward(self, x):
        x = self.projection(self.patches(x))
        token = self.class_token.expand(len(x), -1, -1)
        return torch.cat([token, x], dim=1) + self.pos_embedding


class EncoderBlock(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim)
        )

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        weights = scores.softmax(dim=0 if args.fault == "softmax-over-batch" else -1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.embedding = InputEmbedding()
        self.encoders = nn.Sequential(EncoderBlock(), EncoderBlock())
        self.norm = nn.LayerNorm(32)
        self.classifier = nn.Linear(32, classes)

    def forward(self, x):
        x = self.classifier(self.norm(self.encoders(self.embedding(x))[:, 0]))
        if args.fault == "double-softmax":
            x = F.softmax(x, dim=1)
        return x


def split(count, seed):
    prototypes = F.interpolate(
        torch.randn(8, 1, 4, 4, generator=torch.Generator().manual_seed(9)), size=12
    )
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 8, (count,), generator=generator)
    noise = torch.randn(count, 1, 12, 12, generator=generator)
    return TensorDataset(prototypes[labels] + noise, labels)


train_loader = DataLoader(split(1600, 1), batch_size=args.batch_size, shuffle=True)
valid_loader = DataLoader(split(320, 2), batch_size=64)
model = ViT()
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()

for epoch in range(1, args.epochs + 1):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(train_loader)}]\tLoss: {loss.item()}")
    model.eval()
    losses, correct = [], 0
    with torch.inference_mode():
        for data, target in valid_loader:
            output = model(data)
            losses.append(criterion(output, target).item())
            correct += (output.argmax(1) == target).sum().item()
    print(f"Valid: loss {sum(losses) / len(losses)}, accuracy {correct / 320:.4f}")
