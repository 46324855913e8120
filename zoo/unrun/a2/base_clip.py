# CLIP-style two-tower image-text retrieval with in-batch negatives.
# captions.json: list of {"image": file name, "captions": [str, ...], "split": "train" | "val"}
import json
import math
import os
import random
import re
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms

ROOT, ANN = "images", "captions.json"
DIM, MAX_WORDS, MIN_COUNT = 256, 24, 3
BATCH, EPOCHS, LR, BACKBONE_LR, WARMUP = 128, 30, 5e-4, 5e-5, 200
MAX_SCALE = math.log(100.0)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

random.seed(0)
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

train_tf = transforms.Compose([transforms.RandomResizedCrop(224, scale=(0.6, 1.0)), transforms.ToTensor(),
                               transforms.Normalize(MEAN, STD)])
eval_tf = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
                              transforms.Normalize(MEAN, STD)])


def words(caption):
    return re.findall(r"[a-z0-9]+", caption.lower())


items = json.load(open(ANN))
train_items = [r for r in items if r["split"] == "train"]
val_items = [r for r in items if r["split"] == "val"]
counts = Counter(w for r in train_items for c in r["captions"] for w in words(c))
vocab = {"<pad>": 0, "<unk>": 1}
for w, c in counts.items():
    if c >= MIN_COUNT:
        vocab[w] = len(vocab)


class Pairs(Dataset):
    def __init__(self, rows, tf, train):
        self.rows, self.tf, self.train = rows, tf, train

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        image = self.tf(Image.open(os.path.join(ROOT, row["image"])).convert("RGB"))
        caption = random.choice(row["captions"]) if self.train else row["captions"][0]
        ids = [vocab.get(w, 1) for w in words(caption)][:MAX_WORDS] or [1]
        return image, torch.tensor(ids + [0] * (MAX_WORDS - len(ids)))


class ImageTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = models.resnet18(weights=models.ResNet18_Weights.DEFAULT)
        n = self.backbone.fc.in_features
        self.backbone.fc = nn.Identity()
        self.proj = nn.Linear(n, DIM, bias=False)

    def forward(self, x):
        return F.normalize(self.proj(self.backbone(x)), dim=-1)


class TextTower(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.tok = nn.Embedding(len(vocab), width, padding_idx=0)
        self.pos = nn.Parameter(0.01 * torch.randn(MAX_WORDS, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.proj = nn.Linear(width, DIM, bias=False)

    def forward(self, ids):
        pad = ids == 0
        h = self.norm(self.encoder(self.tok(ids) + self.pos, src_key_padding_mask=pad))
        h = h.masked_fill(pad.unsqueeze(-1), 0.0).sum(1) / (~pad).sum(1, keepdim=True)
        return F.normalize(self.proj(h), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = ImageTower(), TextTower()
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, images, ids):
        return self.image(images), self.text(ids)


def contrastive_loss(img, txt, scale):
    logits = scale * img @ txt.t()
    target = torch.arange(img.size(0), device=img.device)
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


def recall_at(sim, k):
    """Row i's right answer is column i."""
    top = sim.topk(k, dim=1).indices
    target = torch.arange(sim.size(0), device=sim.device).unsqueeze(1)
    return (top == target).any(dim=1).float().mean().item()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    parts = [model(x.to(device), ids.to(device)) for x, ids in loader]
    img, txt = torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])
    sim = img @ txt.t()
    return {"i2t@1": recall_at(sim, 1), "i2t@5": recall_at(sim, 5), "t2i@1": recall_at(sim.t(), 1), "t2i@5": recall_at(sim.t(), 5)}


train_loader = DataLoader(Pairs(train_items, train_tf, True), BATCH, shuffle=True, drop_last=True, num_workers=8)
val_loader = DataLoader(Pairs(val_items, eval_tf, False), BATCH, num_workers=8)

model = TwoTower().to(device)
backbone = list(model.image.backbone.parameters())
backbone_ids = {id(p) for p in backbone}
rest = [p for p in model.parameters() if id(p) not in backbone_ids and p is not model.log_scale]
optimizer = torch.optim.AdamW([{"params": backbone, "lr": BACKBONE_LR}, {"params": rest, "lr": LR},
                               {"params": [model.log_scale], "lr": LR, "weight_decay": 0.0}], weight_decay=0.05)
total = EPOCHS * len(train_loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: (s + 1) / WARMUP if s < WARMUP else
                                              0.5 * (1 + math.cos(math.pi * (s - WARMUP) / (total - WARMUP))))
best = 0.0
for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for images, ids in train_loader:
        img, txt = model(images.to(device), ids.to(device))
        loss = contrastive_loss(img, txt, model.log_scale.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        with torch.no_grad():
            model.log_scale.clamp_(0.0, MAX_SCALE)
        running += loss.item()
    metrics = evaluate(model, val_loader)
    print(epoch, f"loss {running / len(train_loader):.4f}", {k: round(v, 4) for k, v in metrics.items()})
    mean_r1 = 0.5 * (metrics["i2t@1"] + metrics["t2i@1"])
    if mean_r1 > best:
        best = mean_r1
        torch.save({"model": model.state_dict(), "vocab": vocab, "metrics": metrics}, "two_tower.pt")
