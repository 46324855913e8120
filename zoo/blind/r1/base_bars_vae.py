import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)
D = 8


def bars(n):
    # images made of a few horizontal / vertical bars
    rows = (torch.rand(n, D, 1) < 0.2).float()
    cols = (torch.rand(n, 1, D) < 0.2).float()
    return torch.maximum(rows.expand(-1, -1, D), cols.expand(-1, D, -1)).reshape(n, D * D)


class VAE(nn.Module):
    def __init__(self, latent=12):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(D * D, 128), nn.ReLU())
        self.mu = nn.Linear(128, latent)
        self.logvar = nn.Linear(128, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, D * D))

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.dec(z), mu, logvar


def loss_function(logits, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return bce + kld, bce, kld


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
train_x, test_x = bars(2000), bars(400)

for epoch in range(1, 13):
    model.train()
    tot = torch.zeros(3)
    batches = train_x[torch.randperm(len(train_x))].split(64)
    for xb in batches:
        optimizer.zero_grad()
        logits, mu, logvar = model(xb)
        loss, bce, kld = loss_function(logits, xb, mu, logvar)
        loss.backward()
        optimizer.step()
        tot += torch.tensor([loss.item(), bce.item(), kld.item()])
    tot /= len(batches)
    print("====> Epoch %d  loss %.3f  bce %.3f  kld %.3f" % (epoch, *tot.tolist()))

model.eval()
with torch.no_grad():
    logits, mu, logvar = model(test_x)
    err = ((torch.sigmoid(logits) > 0.5).float() - (test_x > 0.5).float()).abs().mean()
print("test pixel error %.4f, std of posterior means %.3f" % (err, mu.std(0).mean()))
