import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class Rings(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 3, (n,), generator=g)
        ang = torch.rand(n, generator=g) * 6.2832
        rad = 1.0 + self.y + 0.18 * torch.randn(n, generator=g)
        extra = torch.randn(n, 6, generator=g)
        self.x = torch.cat([torch.stack([rad * ang.cos(), rad * ang.sin()], 1), extra], 1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"features": self.x[i], "label": self.y[i]}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Dropout(0.6), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.6), nn.Linear(128, 3))

    def forward(self, x):
        return self.net(x)


def epoch_pass(model, loader, loss_fn, opt=None):
    model.train(opt is not None)
    total = right = count = 0
    with torch.set_grad_enabled(opt is not None):
        for b in loader:
            out = model(b["features"])
            loss = loss_fn(out, b["label"])
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(out)
            right += (out.argmax(1) == b["label"]).sum().item()
            count += len(out)
    return total / count, right / count


def main():
    torch.manual_seed(9)
    train, val = DataLoader(Rings(1500, 1), batch_size=50, shuffle=True), DataLoader(Rings(400, 2), batch_size=200)
    model, loss_fn = MLP(), nn.CrossEntropyLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for e in range(9):
        tl, ta = epoch_pass(model, train, loss_fn, opt)
        vl, va = epoch_pass(model, val, loss_fn)
        print(f"{e:2d}: train {tl:.3f}/{ta:.3f}   val {vl:.3f}/{va:.3f}")


main()
