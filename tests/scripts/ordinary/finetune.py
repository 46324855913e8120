"""Transfer learning: frozen convolutional backbone, new classification head."""

import copy
import hashlib
import json
import os
from pathlib import Path

import torch
from torch import nn, optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)

NUM_CLASSES = 4
PATIENCE = 3


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class SmallResNet(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.backbone = nn.Sequential(conv_block(3, 16), conv_block(16, 32), conv_block(32, 64))
        self.avgpool = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(256, num_classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.avgpool(self.backbone(x)), 1))


def make_dataset(n, prototypes):
    labels = torch.randint(NUM_CLASSES, (n,))
    return TensorDataset(prototypes[labels] + 3 * torch.randn(n, 3, 16, 16), labels)


prototypes = torch.randn(NUM_CLASSES, 3, 4, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
datasets = {"train": make_dataset(256, prototypes), "val": make_dataset(120, prototypes)}
dataloaders = {
    phase: DataLoader(datasets[phase], batch_size=32, shuffle=phase == "train")
    for phase in ("train", "val")
}

# stands in for weights="DEFAULT"
model_ft = SmallResNet()
for param in model_ft.parameters():
    param.requires_grad = False
model_ft.fc = nn.Linear(model_ft.fc.in_features, NUM_CLASSES)

criterion = nn.CrossEntropyLoss()
optimizer_ft = optim.Adam(filter(lambda p: p.requires_grad, model_ft.parameters()), lr=0.1)
plateau = lr_scheduler.ReduceLROnPlateau(optimizer_ft, factor=0.3, patience=1)

history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}
best_loss, best_epoch = float("inf"), -1
best_model_wts = copy.deepcopy(model_ft.state_dict())

for epoch in range(24):
    print(f"Epoch {epoch}\n" + "-" * 10)
    for phase in ("train", "val"):
        if phase == "train":
            model_ft.train()
            model_ft.backbone.eval()  # keep the statistics of the frozen BatchNorm layers
        else:
            model_ft.eval()

        running_loss, running_corrects = 0.0, 0
        for inputs, labels in dataloaders[phase]:
            optimizer_ft.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model_ft(inputs)
                _, preds = torch.max(outputs, 1)
                loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model_ft.fc.parameters()))
                    optimizer_ft.step()
                    history["loss"].append(loss.item())
                    history["grad_norm"].append(norm.item())
                    history["lr"].append(optimizer_ft.param_groups[0]["lr"])
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == labels).item()

        epoch_loss = running_loss / len(datasets[phase])
        epoch_acc = running_corrects / len(datasets[phase])
        print(f"{phase} Loss: {epoch_loss:.4f} Acc: {epoch_acc:.4f}")

    history["val_loss"].append([len(history["loss"]), epoch_loss])
    plateau.step(epoch_loss)
    if epoch_loss < best_loss:
        best_loss, best_epoch = epoch_loss, epoch
        best_model_wts = copy.deepcopy(model_ft.state_dict())
    elif epoch - best_epoch >= PATIENCE:
        print(f"Early stopping, best epoch {best_epoch}")
        break

model_ft.load_state_dict(best_model_wts)

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in model_ft.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
