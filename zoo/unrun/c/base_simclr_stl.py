"""SimCLR pre-training on the unlabeled part of STL-10 and a linear probe on the labeled part."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import models, transforms
from torchvision.datasets import STL10

NORM = transforms.Normalize((0.447, 0.440, 0.407), (0.260, 0.257, 0.271))


@dataclass
class Settings:
    data: str = "data"
    epochs: int = 100
    warmup_epochs: int = 5
    batch_size: int = 256
    lr: float = 0.3
    weight_decay: float = 1e-4
    temperature: float = 0.2
    proj_dim: int = 128
    probe_epochs: int = 100
    probe_lr: float = 1e-3
    workers: int = 8
    seed: int = 0


class TwoViews:
    def __init__(self, size=96):
        self.tf = transforms.Compose([
            transforms.RandomResizedCrop(size, scale=(0.2, 1.0)),
            transforms.RandomHorizontalFlip(),
            transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            transforms.RandomGrayscale(p=0.2),
            transforms.ToTensor(),
            NORM,
        ])

    def __call__(self, image):
        return self.tf(image), self.tf(image)


def build(s):
    encoder = models.resnet18()
    dim = encoder.fc.in_features
    encoder.fc = nn.Identity()
    projector = nn.Sequential(nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, s.proj_dim))
    return encoder, projector, dim


def nt_xent(z1, z2, temperature):
    n = z1.size(0)
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sim, targets)


def pretrain(s, device):
    dataset = STL10(s.data, split="unlabeled", download=True, transform=TwoViews())
    loader = DataLoader(dataset, s.batch_size, shuffle=True, num_workers=s.workers, drop_last=True)
    encoder, projector, dim = build(s)
    encoder, projector = encoder.to(device), projector.to(device)
    params = list(encoder.parameters()) + list(projector.parameters())
    optimizer = torch.optim.SGD(params, lr=s.lr, momentum=0.9, weight_decay=s.weight_decay)
    total, warm = s.epochs * len(loader), s.warmup_epochs * len(loader)

    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for epoch in range(s.epochs):
        encoder.train()
        projector.train()
        running = 0.0
        for (v1, v2), _ in loader:
            h = encoder(torch.cat([v1, v2]).to(device))
            z1, z2 = projector(h).chunk(2)
            loss = nt_xent(z1, z2, s.temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.item()
        print(f"epoch {epoch:3d} contrastive loss {running / len(loader):.4f}")
        torch.save({"encoder": encoder.state_dict(), "projector": projector.state_dict(),
                    "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                    "epoch": epoch}, "simclr.pt")
    return encoder, dim


@torch.no_grad()
def extract(encoder, s, split, device):
    tf = transforms.Compose([transforms.ToTensor(), NORM])
    loader = DataLoader(STL10(s.data, split=split, download=True, transform=tf), 256, num_workers=s.workers)
    encoder.eval()
    feats, labels = [], []
    for x, y in loader:
        feats.append(encoder(x.to(device)))
        labels.append(y)
    return torch.cat(feats), torch.cat(labels).to(device)


def linear_probe(encoder, dim, s, device):
    train_x, train_y = extract(encoder, s, "train", device)
    test_x, test_y = extract(encoder, s, "test", device)
    mean, std = train_x.mean(0), train_x.std(0) + 1e-6
    train_x, test_x = (train_x - mean) / std, (test_x - mean) / std
    head = nn.Linear(dim, 10).to(device)
    optimizer = torch.optim.Adam(head.parameters(), lr=s.probe_lr, weight_decay=1e-4)
    for _ in range(s.probe_epochs):
        for idx in torch.randperm(len(train_x), device=device).split(256):
            loss = F.cross_entropy(head(train_x[idx]), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return (head(test_x).argmax(1) == test_y).float().mean().item()


if __name__ == "__main__":
    settings = Settings()
    torch.manual_seed(settings.seed)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    enc, feat_dim = pretrain(settings, dev)
    print(f"linear probe test accuracy {linear_probe(enc, feat_dim, settings, dev):.4f}")
