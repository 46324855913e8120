"""SimCLR pretraining on STL-10 followed by a linear probe."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import models, transforms
from torchvision.datasets import STL10

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HP = dict(batch=512, epochs=100, warmup=5, lr=1e-3, wd=1e-4, temp=0.2, proj=128, probe_epochs=50, probe_lr=1e-3)
NORM = transforms.Normalize((0.447, 0.440, 0.407), (0.260, 0.257, 0.271))


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

    def __call__(self, img):
        return self.tf(img), self.tf(img)


class SimCLR(nn.Module):
    def __init__(self, proj):
        super().__init__()
        self.encoder = models.resnet18(weights=None)
        dim = self.encoder.fc.in_features
        self.encoder.fc = nn.Identity()
        self.projector = nn.Sequential(
            nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(inplace=True), nn.Linear(dim, proj))
        self.dim = dim

    def forward(self, x):
        return self.projector(self.encoder(x))


def nt_xent(z1, z2, temp):
    n = z1.size(0)
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.t() / temp
    sim.fill_diagonal_(float("-inf"))
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sim, target)


def lr_at(step, total, warmup):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def pretrain():
    data = STL10("data", split="unlabeled", transform=TwoViews(), download=True)
    loader = DataLoader(data, HP["batch"], shuffle=True, num_workers=12, drop_last=True, pin_memory=True)
    model = SimCLR(HP["proj"]).to(DEVICE)
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": HP["wd"]},
                             {"params": plain, "weight_decay": 0.0}], lr=HP["lr"])
    total, warm = HP["epochs"] * len(loader), HP["warmup"] * len(loader)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: lr_at(s, total, warm))
    for epoch in range(HP["epochs"]):
        model.train()
        running = 0.0
        for (a, b), _ in loader:
            a, b = a.to(DEVICE, non_blocking=True), b.to(DEVICE, non_blocking=True)
            z = model(torch.cat([a, b]))
            loss = nt_xent(*z.chunk(2), HP["temp"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            running += loss.item()
        print(f"pretrain {epoch:3d} loss {running / len(loader):.4f}")
        torch.save(model.state_dict(), "simclr.pt")
    return model


@torch.no_grad()
def embed(model, split):
    tf = transforms.Compose([transforms.ToTensor(), NORM])
    loader = DataLoader(STL10("data", split=split, transform=tf, download=True), 256, num_workers=4)
    model.eval()
    feats, labels = [], []
    for x, y in loader:
        feats.append(model.encoder(x.to(DEVICE)).cpu())
        labels.append(y)
    return torch.cat(feats), torch.cat(labels)


def linear_probe(model):
    (x, y), (xt, yt) = embed(model, "train"), embed(model, "test")
    mean, std = x.mean(0), x.std(0) + 1e-6
    x, xt = (x - mean) / std, (xt - mean) / std
    clf = nn.Linear(model.dim, 10)
    opt = torch.optim.Adam(clf.parameters(), lr=HP["probe_lr"], weight_decay=1e-4)
    for _ in range(HP["probe_epochs"]):
        for idx in torch.randperm(len(x)).split(256):
            loss = F.cross_entropy(clf(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        return (clf(xt).argmax(1) == yt).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    net = pretrain()
    print(f"linear probe accuracy {linear_probe(net):.4f}")
