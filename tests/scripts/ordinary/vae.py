import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

torch.manual_seed(1)

epochs = 12
batch_size = 64


def blobs(n, size=10):
    """Draw a soft disc at a random place."""
    grid = torch.arange(size).float()
    cx, cy = torch.rand(2, n, 1, 1) * (size - 4) + 2
    distance = (grid[None, :, None] - cx) ** 2 + (grid[None, None, :] - cy) ** 2
    return torch.exp(-distance / 4)


train_data, test_data = blobs(640), blobs(150)
train_loader = DataLoader(train_data, batch_size=batch_size, shuffle=True)
test_loader = DataLoader(test_data, batch_size=batch_size, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(100, 64)
        self.fc21 = nn.Linear(64, 4)
        self.fc22 = nn.Linear(64, 4)
        self.fc3 = nn.Linear(4, 64)
        self.fc4 = nn.Linear(64, 100)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 100))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=3e-3)

# val_loss is the reconstruction term of a pixel, val_objective both terms of a batch
history = {"loss": [], "val_loss": [], "val_objective": [], "grad_norm": [], "lr": []}


# Reconstruction + KL divergence losses summed over all elements and batch
def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 100), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld, bce


def train(epoch):
    model.train()
    train_loss = 0
    for data in train_loader:
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss, _ = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
        optimizer.step()
        history["loss"].append(loss.item())
        history["grad_norm"].append(norm.item())
        history["lr"].append(optimizer.param_groups[0]["lr"])
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_data):.4f}")


def test():
    model.eval()
    test_loss = test_bce = pixels = 0
    with torch.no_grad():
        for data in test_loader:
            recon_batch, mu, logvar = model(data)
            loss, bce = loss_function(recon_batch, data, mu, logvar)
            test_loss += loss.item() * len(data)
            test_bce += bce.item()
            pixels += data.numel()
    steps = len(history["loss"])
    history["val_loss"].append([steps, test_bce / pixels])
    history["val_objective"].append([steps, test_loss / len(test_data)])
    print(f"====> Test set loss per batch: {test_loss / len(test_data):.4f}")


if __name__ == "__main__":
    for epoch in range(1, epochs + 1):
        train(epoch)
        test()

    if "HISTORY" in os.environ:
        weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
        history["weights"] = hashlib.sha256(weights).hexdigest()
        Path(os.environ["HISTORY"]).write_text(json.dumps(history))
