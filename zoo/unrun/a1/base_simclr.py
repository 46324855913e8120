"""SimCLR pretraining on STL-10 unlabelled images, followed by a linear probe on frozen features."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms


class TwoViews:
    def __init__(self, base):
        self.base = base

    def __call__(self, img):
        return self.base(img), self.base(img)


def simclr_transform(size=96):
    jitter = transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)
    return transforms.Compose([
        transforms.RandomResizedCrop(size, scale=(0.2, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.RandomApply([jitter], p=0.8),
        transforms.RandomGrayscale(p=0.2),
        transforms.ToTensor(),
    ])


class SimCLR(nn.Module):
    def __init__(self, proj_dim=128):
        super().__init__()
        net = models.resnet18(weights=None)
        self.feat_dim = net.fc.in_features
        net.fc = nn.Identity()
        self.encoder = net
        self.projector = nn.Sequential(
            nn.Linear(self.feat_dim, self.feat_dim), nn.ReLU(), nn.Linear(self.feat_dim, proj_dim)
        )

    def forward(self, x):
        return F.normalize(self.projector(self.encoder(x)), dim=1)


def nt_xent(z1, z2, temperature):
    n = z1.size(0)
    z = torch.cat([z1, z2], dim=0)
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(float("-inf"))
    positives = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)]).to(z.device)
    return F.cross_entropy(sim, positives)


def pretrain(model, loader, args, device):
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=args.epochs * len(loader))
    scaler = torch.cuda.amp.GradScaler(enabled=device == "cuda")
    model.train()
    for epoch in range(args.epochs):
        total = 0.0
        for (v1, v2), _ in loader:
            v1, v2 = v1.to(device, non_blocking=True), v2.to(device, non_blocking=True)
            with torch.autocast(device_type=device, enabled=device == "cuda"):
                z1, z2 = model(v1), model(v2)
            loss = nt_xent(z1.float(), z2.float(), args.temperature)
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(opt)
            scaler.update()
            sched.step()
            total += loss.item()
        print(f"pretrain {epoch:3d} loss {total / len(loader):.4f}")
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(),
                    "sched": sched.state_dict(), "epoch": epoch}, args.ckpt)


@torch.no_grad()
def extract(model, loader, device):
    model.eval()
    feats, labels = [], []
    for x, y in loader:
        feats.append(model.encoder(x.to(device)).cpu())
        labels.append(y)
    return torch.cat(feats), torch.cat(labels)


def linear_probe(train, test, n_classes, epochs=100, device="cpu"):
    (xtr, ytr), (xte, yte) = train, test
    mu, sd = xtr.mean(0), xtr.std(0) + 1e-6
    xtr, xte = ((xtr - mu) / sd).to(device), ((xte - mu) / sd).to(device)
    ytr, yte = ytr.to(device), yte.to(device)
    probe = nn.Linear(xtr.size(1), n_classes).to(device)
    opt = torch.optim.Adam(probe.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(epochs):
        for idx in torch.randperm(len(xtr), device=device).split(256):
            loss = F.cross_entropy(probe(xtr[idx]), ytr[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        return (probe(xte).argmax(1) == yte).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default="data")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--batch-size", type=int, default=512)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--temperature", type=float, default=0.2)
    p.add_argument("--ckpt", default="simclr.pt")
    args = p.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    unlab = datasets.STL10(args.root, split="unlabeled", download=True,
                           transform=TwoViews(simclr_transform()))
    loader = DataLoader(unlab, args.batch_size, shuffle=True, num_workers=8, drop_last=True, pin_memory=True)
    model = SimCLR().to(device)
    pretrain(model, loader, args, device)

    plain = transforms.ToTensor()
    tr = DataLoader(datasets.STL10(args.root, split="train", transform=plain), 512, num_workers=8)
    te = DataLoader(datasets.STL10(args.root, split="test", transform=plain), 512, num_workers=8)
    acc = linear_probe(extract(model, tr, device), extract(model, te, device), 10, device=device)
    print(f"linear probe accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
