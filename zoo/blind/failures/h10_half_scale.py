import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class DynamicScale:
    def __init__(self, value=2.0 ** 20, interval=40):
        self.value, self.interval, self.clean = value, interval, 0

    def step(self, opt, params):
        grads = [p.grad for p in params]
        if all(bool(torch.isfinite(g).all()) for g in grads):
            for g in grads:
                g.div_(self.value)
            opt.step()
            self.clean += 1
            if self.clean % self.interval == 0:
                self.value *= 2
            return True
        self.value /= 2
        self.clean = 0
        return False


def main():
    torch.manual_seed(30)
    X = torch.randn(2500, 24, device=device)
    y = torch.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    y[torch.randint(0, 2500, (4,))] *= 20
    net = nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 1)).to(device)
    params = list(net.parameters())
    opt = torch.optim.Adam(params, lr=2e-3)
    scale = DynamicScale()
    skipped = 0
    for step in range(400):
        i = torch.randperm(2500, device=device)[:50]
        with torch.autocast(device, dtype=torch.float16):
            pred = net(X[i]).squeeze(1)
        loss = F.smooth_l1_loss(pred.float(), y[i])
        opt.zero_grad()
        (loss * scale.value).backward()
        skipped += not scale.step(opt, params)
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} scale {scale.value:g} skipped {skipped}")


main()
