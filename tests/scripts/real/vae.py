"""A variational autoencoder; the losses are summed over pixels and batch."""

import argparse

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description="VAE example")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--log-interval", type=int, default=5)
args = parser.parse_args()

torch.manual_seed(args.seed)


def discs(n, size=12):
    grid = torch.arange(size).float()
    cx, cy = torch.rand(2, n, 1, 1) * (size - 4) + 2
    distance = (grid[None, :, None] - cx) ** 2 + (grid[None, None, :] - cy) ** 2
    return torch.exp(-distance / 5)


train_loader = DataLoader(discs(1280), batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(discs(320), batch_size=args.batch_size, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(144, 96)
        self.fc21 = nn.Linear(96, 6)
        self.fc22 = nn.Linear(96, 6)
        self.fc3 = nn.Linear(6, 96)
        self.fc4 = nn.Linear(96, 144)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 144))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


# Reconstruction + KL divergence losses summed over all elements and batch
def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 144), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld, bce


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(train_loader):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss, _ = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}]\tLoss: {loss.item() / len(data)}")
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.4f}")


def test(epoch):
    model.eval()
    test_loss = test_bce = 0
    with torch.no_grad():
        for data in test_loader:
            recon_batch, mu, logvar = model(data)
            loss, bce = loss_function(recon_batch, data, mu, logvar)
            test_loss += loss.item()
            test_bce += bce.item()
    test_loss /= len(test_loader.dataset)
    print(f"====> Test set loss: {test_loss} reconstruction {test_bce / len(test_loader.dataset)}")


if __name__ == "__main__":
    for epoch in range(1, args.epochs + 1):
        train(epoch)
        test(epoch)
