import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 11
MEAN, STD = 118.0, 64.0


class Backbone(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(64, width), nn.ReLU())
        self.block1 = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())
        self.block2 = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())

    def forward(self, x):
        x = self.stem(x)
        x = x + self.block1(x)
        return x + self.block2(x)


class Classifier(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.backbone = Backbone()
        self.fc = nn.Linear(96, n_classes)

    def forward(self, x):
        return self.fc(self.backbone(x))


class World:
    """Pixel vectors (0..255) drawn from 24 prototypes mixed by a fixed non-linear renderer."""

    def __init__(self, gen):
        self.gen = gen
        self.proto = torch.randn(24, 10, generator=gen)
        self.a = torch.randn(10, 48, generator=gen) * 0.6
        self.b = torch.randn(48, 64, generator=gen) * 0.9

    def sample(self, n):
        which = torch.randint(0, 24, (n,), generator=self.gen)
        z = self.proto[which] + 0.45 * torch.randn(n, 10, generator=self.gen)
        img = torch.tanh(torch.sin(z @ self.a) @ self.b * 0.25 + 0.1 * torch.randn(n, 64, generator=self.gen))
        return (img * 110 + 118).clamp(0, 255), which


def normalise(img):
    return (img - MEAN) / STD


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def pretrain(world):
    img, y = world.sample(6000)
    x = normalise(img)
    model = Classifier(24)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(5):
        for idx in torch.randperm(len(x)).split(128):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"[pretrain] epoch {epoch} loss {loss.item():.3f}")
    img, y = world.sample(1000)
    print(f"[pretrain] held-out acc {accuracy(model, normalise(img), y):.3f}")
    return model.state_dict()


def finetune(world, weights):
    regroup = torch.randperm(24, generator=world.gen) % 6        # new task: 6 groups of prototypes
    img, which = world.sample(360)
    x, y = normalise(img), regroup[which]
    img, which = world.sample(1500)
    x_va, y_va = normalise(img), regroup[which]

    model = Classifier(24)
    model.load_state_dict(weights)
    model.fc = nn.Linear(96, 6)
    groups = [
        {"params": model.backbone.parameters(), "lr": 1e-4},
        {"params": model.fc.parameters(), "lr": 4e-3},
    ]
    opt = torch.optim.AdamW(groups, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=25)
    for epoch in range(25):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        if epoch % 4 == 0:
            print(f"[finetune] epoch {epoch:2d} loss {total / len(x):.3f} train {accuracy(model, x, y):.3f} val {accuracy(model, x_va, y_va):.3f}")
    return model


if __name__ == "__main__":
    torch.manual_seed(SEED)
    world = World(torch.Generator().manual_seed(SEED))
    weights = copy.deepcopy(pretrain(world))
    finetune(world, weights)
