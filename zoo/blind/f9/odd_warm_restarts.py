import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification

torch.set_num_threads(1)
torch.manual_seed(207)


def load():
    x, y = make_classification(3000, n_features=20, n_informative=8, n_classes=4, random_state=3)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.a = nn.Linear(dim, 2 * dim)
        self.b = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


def main():
    x, y = load()
    model = nn.Sequential(nn.Linear(20, 32), Block(32), Block(32), nn.Linear(32, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=150, eta_min=1e-4)
    for step in range(750):
        if step % 150 == 0:
            opt.state.clear()
        idx = torch.randint(len(x), (64,))
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 25 == 0:
            print(f"step {step} lr {sched.get_last_lr()[0]:.4f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
