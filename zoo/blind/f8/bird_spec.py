"""Bird-call classification on cube-root compressed band energies."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class CubeRoot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sign(x) * x.abs().pow(1.0 / 3.0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (3 * y * y)


class Calls(Dataset):
    bands, frames, species = 16, 20, 5

    def __init__(self, n=3200, seed=38):
        g = torch.Generator().manual_seed(seed)
        shape = torch.rand(self.species, self.bands, generator=g) ** 3
        self.label = torch.randint(0, self.species, (n,), generator=g)
        env = torch.rand(n, 1, self.frames, generator=g)
        self.spec = shape[self.label].unsqueeze(-1) * env * 4
        self.spec = self.spec + 0.1 * torch.rand(n, self.bands, self.frames, generator=g)
        self.spec[2741] = 0.0

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.spec[i], self.label[i]


class BirdNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Linear(Calls.bands, 12, bias=False)
        self.head = nn.Sequential(nn.BatchNorm1d(12), nn.Linear(12, 32), nn.ReLU(),
                                  nn.Linear(32, Calls.species))

    def forward(self, spec):
        e = self.filter(spec.transpose(1, 2))
        c = CubeRoot.apply(e)
        return self.head(c.mean(1))


def main():
    torch.manual_seed(38)
    loader = DataLoader(Calls(), batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(4))
    net = BirdNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    crit = nn.CrossEntropyLoss()
    step = 0
    for epoch in range(2):
        for spec, label in loader:
            loss = crit(net(spec), label)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 1.0)
            opt.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
