import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn, optim

torch.manual_seed(999)

nz = 8
batch_size = 64
num_iters = 150


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(nz, 32), nn.ReLU(True), nn.Linear(32, 2))

    def forward(self, x):
        return self.main(x)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, 32),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(32, 32),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(32, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.main(x).view(-1)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


def grad_norm(net):
    return torch.sqrt(sum(p.grad.pow(2).sum() for p in net.parameters())).item()


def real_batch(n):
    return torch.randn(n, 2) * torch.tensor([0.5, 0.2]) + torch.tensor([1.0, -1.0])


net_g = Generator()
net_g.apply(weights_init)
net_d = Discriminator()
net_d.apply(weights_init)

criterion = nn.BCELoss()
real_label, fake_label = 1.0, 0.0

optimizer_d = optim.Adam(net_d.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_g = optim.Adam(net_g.parameters(), lr=1e-3, betas=(0.5, 0.999))

history = {
    "loss": {"Discriminator": [], "Generator": []},
    "val_loss": [],
    "grad_norm": {"Discriminator": [], "Generator": []},
    "lr": {"Discriminator": [], "Generator": []},
}

for i in range(num_iters):
    # (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
    net_d.zero_grad()
    real = real_batch(batch_size)
    label = torch.full((batch_size,), real_label)
    err_d_real = criterion(net_d(real), label)
    err_d_real.backward()

    noise = torch.randn(batch_size, nz)
    fake = net_g(noise)
    label.fill_(fake_label)
    err_d_fake = criterion(net_d(fake.detach()), label)
    err_d_fake.backward()
    err_d = err_d_real + err_d_fake
    history["grad_norm"]["Discriminator"].append(grad_norm(net_d))
    optimizer_d.step()

    # (2) Update G network: maximize log(D(G(z)))
    net_g.zero_grad()
    label.fill_(real_label)
    output = net_d(fake)
    err_g = criterion(output, label)
    err_g.backward()
    history["grad_norm"]["Generator"].append(grad_norm(net_g))
    optimizer_g.step()

    history["loss"]["Discriminator"].append(err_d.item())
    history["loss"]["Generator"].append(err_g.item())
    history["lr"]["Discriminator"].append(optimizer_d.param_groups[0]["lr"])
    history["lr"]["Generator"].append(optimizer_g.param_groups[0]["lr"])
    if i % 50 == 0:
        print(f"[{i}/{num_iters}] Loss_D: {err_d.item():.4f} Loss_G: {err_g.item():.4f}")

with torch.no_grad():
    samples = net_g(torch.randn(512, nz))
print("mean", samples.mean(0).tolist(), "std", samples.std(0).tolist())

if "HISTORY" in os.environ:
    sha = hashlib.sha256()
    for net in (net_d, net_g):
        for v in net.state_dict().values():
            sha.update(v.numpy().tobytes())
    history["weights"] = sha.hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
