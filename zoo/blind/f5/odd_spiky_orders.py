"""Order volumes with rare enormous batches; the loss spikes and comes back."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_num_threads(1)

FEATS, BATCH, STEPS = 15, 64, 900


class Orders:
    def __init__(self):
        self.g = torch.Generator().manual_seed(30)
        self.w = torch.randn(FEATS, generator=self.g) * 0.5

    def batch(self, step):
        x = torch.randn(BATCH, FEATS, generator=self.g)
        y = x @ self.w + torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(BATCH, generator=self.g)
        if step % 131 == 130:
            # a reseller empties the warehouse
            k = int(torch.randint(1, 4, (1,), generator=self.g))
            y[:k] *= 3000.0
        return x, y


class Net(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def main():
    orders, net = Orders(), Net()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    spikes = 0
    for step in range(STEPS):
        x, y = orders.batch(step)
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if loss.item() > 1000:
            spikes += 1
            print(f"step {step} loss {loss.item():.1f} gradient norm {norm.item():.1f}  <-- spike")
        elif step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} gradient norm {norm.item():.2f}")
    print("spikes:", spikes)


if __name__ == "__main__":
    main()
