"""Convolutional VAE on MNIST with KL warm-up, ELBO evaluation and prior samples."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms
from torchvision.utils import save_image

torch.manual_seed(42)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

latent_dim = 16
batch_size = 128
epochs = 30
lr = 1e-3
warmup_epochs = 5

to_tensor = transforms.ToTensor()
full_train = datasets.MNIST("data", train=True, download=True, transform=to_tensor)
train_set, val_set = random_split(full_train, [55000, 5000], generator=torch.Generator().manual_seed(0))
test_set = datasets.MNIST("data", train=False, download=True, transform=to_tensor)
train_loader = DataLoader(train_set, batch_size, shuffle=True, drop_last=True, num_workers=2)
val_loader = DataLoader(val_set, 500)
test_loader = DataLoader(test_set, 500)


class Encoder(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 7 * 7, 256), nn.ReLU())
        self.mu = nn.Linear(256, latent_dim)
        self.logvar = nn.Linear(256, latent_dim)

    def forward(self, x):
        h = self.net(x)
        return self.mu(h), self.logvar(h)


class Decoder(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent_dim, 256), nn.ReLU(),
            nn.Linear(256, 64 * 7 * 7), nn.ReLU(), nn.Unflatten(1, (64, 7, 7)),
            nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1))

    def forward(self, z):
        return self.net(z)


class VAE(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.latent_dim = latent_dim
        self.encoder = Encoder(latent_dim)
        self.decoder = Decoder(latent_dim)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        mu, logvar = self.encoder(x)
        z = self.reparameterize(mu, logvar)
        return self.decoder(z), mu, logvar

    def sample(self, n):
        z = torch.randn(n, self.latent_dim, device=device)
        return torch.sigmoid(self.decoder(z))


def elbo_terms(logits, x, mu, logvar):
    """Reconstruction and KL per image, in nats, averaged over the batch."""
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=(1, 2, 3))
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1)
    return rec.mean(), kl.mean()


def evaluate(model, loader):
    model.eval()
    rec_sum = kl_sum = n = 0
    with torch.no_grad():
        for x, _ in loader:
            x = x.to(device)
            logits, mu, logvar = model(x)
            rec, kl = elbo_terms(logits, x, mu, logvar)
            rec_sum += rec.item() * x.size(0)
            kl_sum += kl.item() * x.size(0)
            n += x.size(0)
    return rec_sum / n, kl_sum / n


model = VAE(latent_dim).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=lr)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs, eta_min=1e-5)
best_elbo = float("-inf")

for epoch in range(epochs):
    model.train()
    beta = min(1.0, (epoch + 1) / warmup_epochs)
    rec_total = kl_total = 0.0
    for x, _ in train_loader:
        x = x.to(device)
        logits, mu, logvar = model(x)
        rec, kl = elbo_terms(logits, x, mu, logvar)
        loss = rec + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rec_total += rec.item()
        kl_total += kl.item()
    scheduler.step()

    val_rec, val_kl = evaluate(model, val_loader)
    elbo = -(val_rec + val_kl)
    print(f"epoch {epoch:02d} beta {beta:.2f} train rec {rec_total / len(train_loader):.2f} "
          f"kl {kl_total / len(train_loader):.2f} | val rec {val_rec:.2f} kl {val_kl:.2f} elbo {elbo:.2f}")
    if elbo > best_elbo:
        best_elbo = elbo
        torch.save(model.state_dict(), "vae_best.pt")

model.load_state_dict(torch.load("vae_best.pt", map_location=device))
rec, kl = evaluate(model, test_loader)
print(f"test elbo {-(rec + kl):.2f}")
with torch.no_grad():
    save_image(model.sample(64), "vae_samples.png", nrow=8)
    x = next(iter(test_loader))[0][:32].to(device)
    save_image(torch.cat([x, torch.sigmoid(model(x)[0])]), "vae_reconstructions.png", nrow=8)
