import torch
from torch import nn


def sensor_data(n, gen):
    """20 correlated sensors driven by 3 hidden factors."""
    f = torch.randn(n, 3, generator=gen)
    mix = torch.randn(3, 20, generator=torch.Generator().manual_seed(77))
    clean = torch.tanh(f @ mix) * 2 + 0.5 * (f[:, :1] ** 2) * torch.linspace(-1, 1, 20)
    return clean


class DenoisingAE(nn.Module):
    def __init__(self, d=20, h=48, code=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, code))
        self.decoder = nn.Sequential(nn.Linear(code, h), nn.ReLU(), nn.Linear(h, d))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run(seed=0, epochs=15, lr=0.05, bs=50):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    train, test = sensor_data(1500, gen), sensor_data(300, gen)
    mean, std = train.mean(dim=0), train.std(dim=0)
    train, test = (train - mean) / std, (test - mean) / std
    ae = DenoisingAE()
    optimizer = torch.optim.SGD(ae.parameters(), lr=lr, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.1, patience=1)
    log = []
    for epoch in range(epochs):
        ae.train()
        running = 0.0
        for batch in train[torch.randperm(len(train), generator=gen)].split(bs):
            noisy = batch + 0.1 * torch.randn(batch.shape, generator=gen)
            recon = ae(noisy)
            loss = nn.functional.mse_loss(recon, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(batch)
        ae.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(ae(test), test).item()
        sched.step(val)
        log.append(val)
        print(f"epoch {epoch + 1:>2}/{epochs}  train {running / len(train):.4f}  test {val:.4f}")
    return log


if __name__ == "__main__":
    curve = run()
    print("explained variance on test: %.3f" % (1 - curve[-1]))
