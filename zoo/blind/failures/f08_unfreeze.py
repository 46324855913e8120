import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
CATS, NUM = 12, 6


def load_table(n):
    num = torch.randn(n, NUM)
    cat = torch.randint(0, CATS - 1, (n,))
    effect = torch.linspace(-1.5, 1.5, CATS)
    logit = num[:, 0] * 1.5 - num[:, 1] + effect[cat]
    label = (logit + 0.3 * torch.randn(n) > 0).long()
    return torch.cat([num, F.one_hot(cat, CATS).float()], 1), label


class Tabular(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(NUM + CATS, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


def freeze(module, flag):
    for p in module.parameters():
        p.requires_grad_(not flag)


def fit():
    x, y = load_table(1500)
    model = Tabular()
    freeze(model.backbone, True)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=4e-3, betas=(0.9, 0.99), eps=0.0)
    step = 0
    for epoch in range(5):
        if epoch == 2:
            print("-- backbone joins the training")
            freeze(model.backbone, False)
            optimizer.add_param_group({"params": model.backbone.parameters(), "lr": 1e-3})
        perm = torch.randperm(len(x))
        for i in range(0, len(x), 30):
            j = perm[i:i + 30]
            loss = F.cross_entropy(model(x[j]), y[j])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"{step:4d} ce={loss.item():.4f}")
            step += 1


fit()
