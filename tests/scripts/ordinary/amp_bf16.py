"""Mixed precision on the CPU: bfloat16 needs no gradient scaling."""

import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
in_size, hidden, out_size = 24, 64, 5


def make_model(num_layers=3):
    layers = []
    for i in range(num_layers - 1):
        layers += [nn.Linear(in_size if i == 0 else hidden, hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, out_size))


centers = 0.8 * torch.randn(out_size, in_size)
labels = torch.randint(out_size, (900,))
features = centers[labels] + torch.randn(900, in_size)
train_loader = DataLoader(
    TensorDataset(features[:700], labels[:700]), batch_size=50, shuffle=True, drop_last=True
)
val_loader = DataLoader(TensorDataset(features[700:], labels[700:]), batch_size=80)

net = make_model()
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)

history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

for epoch in range(6):
    net.train()
    for x, y in train_loader:
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            output = net(x)
            assert output.dtype is torch.bfloat16
            loss = loss_fn(output, y)
        # exits autocast before backward()
        loss.backward()
        norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in net.parameters()))
        history["loss"].append(loss.item())
        history["grad_norm"].append(norm.item())
        history["lr"].append(opt.param_groups[0]["lr"])
        opt.step()
        opt.zero_grad()
    scheduler.step()

    net.eval()
    total = 0.0
    with torch.no_grad(), torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        for x, y in val_loader:
            total += loss_fn(net(x), y).item() * x.shape[0]
    history["val_loss"].append([len(history["loss"]), total / 200])
    print(f"epoch {epoch} loss {history['loss'][-1]:.4f} val {total / 200:.4f}")

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in net.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
