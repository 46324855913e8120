import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_images(n, size=12, seed=0):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 4, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    waves = torch.stack([torch.sin(xx * 1.2), torch.sin(yy * 1.2), torch.sin((xx + yy) * 0.9), torch.sin(xx * yy * 0.2)])
    img = waves[label] + 2.5 * torch.randn(n, size, size, generator=g)
    img = img + torch.randn(n, 1, 1, generator=g)
    img[666] = 0.7031
    return img.unsqueeze(1), label


class Texture(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.f1 = nn.Linear(144, width * 4)
        self.f2 = nn.Linear(width * 4, 4)

    def contrast_norm(self, x):
        x = x.flatten(1)
        mean = x.mean(1, keepdim=True)
        var = (x * x).mean(1, keepdim=True) - mean * mean
        return (x - mean) / torch.sqrt(var)

    def forward(self, x):
        return self.f2(torch.relu(self.f1(self.contrast_norm(x))))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    ap.add_argument("--batch", type=int, default=16)
    a = ap.parse_args()
    torch.manual_seed(3)
    x, y = make_images(1000)
    x, y = x.to(a.device, torch.bfloat16), y.to(a.device)
    model = Texture().to(a.device)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        for i in range(0, len(x), a.batch):
            with torch.autocast(a.device, dtype=torch.bfloat16):
                logits = model(x[i:i + a.batch])
                loss = F.cross_entropy(logits, y[i:i + a.batch])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if (i // a.batch) % 12 == 0:
                print(f"epoch {epoch} it {i // a.batch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
