"""VAE on 14x14 pictures of one rectangle and one bright dot, KL warm-up, ELBO and samples checked."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(17)

SIDE, LATENT, EPOCHS = 14, 8, 24
BETA, WARM_EPOCHS = 1.0, 8


def pictures(n):
    out = torch.zeros(n, SIDE, SIDE)
    for i in range(n):
        h, w = torch.randint(4, 9, (2,)).tolist()
        y = int(torch.randint(0, SIDE - h + 1, ()))
        x = int(torch.randint(0, SIDE - w + 1, ()))
        out[i, y:y + h, x:x + w] = 190
    out += 40 * torch.rand(n, 1, 1) + 8 * torch.rand(n, SIDE, SIDE)
    return out.clamp(0, 255).to(torch.uint8)


raw_train, raw_val = pictures(1600), pictures(400)
x_train = raw_train.float().div(255).flatten(1)
x_val = raw_val.float().div(255).flatten(1)
train_loader = DataLoader(TensorDataset(x_train), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val), batch_size=200)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(SIDE * SIDE, 160), nn.ReLU(), nn.Linear(160, 96), nn.ReLU())
        self.mu = nn.Linear(96, LATENT)
        self.logvar = nn.Linear(96, LATENT)

    def forward(self, x):
        h = self.net(x)
        return self.mu(h), self.logvar(h).clamp(-8, 4)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = nn.Sequential(nn.Linear(LATENT, 96), nn.ReLU(), nn.Linear(96, 160), nn.ReLU(),
                                     nn.Linear(160, SIDE * SIDE))

    def forward(self, x):
        mu, logvar = self.encoder(x)
        if self.training:
            std = torch.exp(0.5 * logvar)
            z = mu + std * torch.randn_like(std)
        else:
            z = mu
        return self.decoder(z), mu, logvar


def terms(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec, kl


@torch.no_grad()
def validate(model):
    model.eval()
    rec = kl = mse = 0.0
    mus = []
    for (x,) in val_loader:
        logits, mu, logvar = model(x)
        r, k = terms(logits, x, mu, logvar)
        rec += r.item() * len(x)
        kl += k.item() * len(x)
        mse += F.mse_loss(torch.sigmoid(logits), x, reduction="sum").item() / x.shape[1]
        mus.append(mu)
    active = int((torch.cat(mus).var(0) > 0.02).sum())
    n = len(x_val)
    return rec / n, kl / n, mse / n, active


@torch.no_grad()
def sample_distance(model, n=200):
    model.eval()
    s = torch.sigmoid(model.decoder(torch.randn(n, LATENT)))
    return torch.cdist(s, x_train).min(1).values.mean().item()


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
steps = 0
warm_steps = WARM_EPOCHS * len(train_loader)

for epoch in range(1, EPOCHS + 1):
    model.train()
    sums = torch.zeros(2)
    for (x,) in train_loader:
        beta = BETA * min(1.0, steps / warm_steps)
        logits, mu, logvar = model(x)
        rec, kl = terms(logits, x, mu, logvar)
        loss = rec + beta * kl
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        optimizer.step()
        steps += 1
        sums += torch.tensor([rec.item(), kl.item()]) * len(x)
    if epoch % 4 == 0:
        rec, kl, mse, active = validate(model)
        tr = sums / len(x_train)
        print(f"epoch {epoch:2d} beta {beta:.2f} train rec {tr[0]:.2f} kl {tr[1]:.2f} | val rec {rec:.2f} kl {kl:.2f} mse {mse:.4f} active {active}")

rec, kl, mse, active = validate(model)
base_mse = ((x_val - x_train.mean(0)) ** 2).mean().item()
print(f"final val rec {rec:.2f} kl {kl:.2f} mse {mse:.4f} (mean picture {base_mse:.4f}) active dims {active}/{LATENT}")
print(f"distance of samples to nearest training picture {sample_distance(model):.3f}")
