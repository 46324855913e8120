"""Transfer learning: a pretrained backbone, a new head, phases for training and validation."""

import argparse
import copy

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
args = parser.parse_args()

torch.manual_seed(0)
generator = torch.Generator().manual_seed(5)
prototypes = torch.randn(12, 40, generator=generator)


def samples(count, classes):
    labels = torch.randint(0, len(classes), (count,), generator=generator)
    return prototypes[classes][labels] + torch.randn(count, 40, generator=generator), labels


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(40, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU()
        )
        self.fc = nn.Linear(32, 6)

    def forward(self, x):
        return self.fc(self.features(x))


def pretrained():
    """Weights as if they came from a hub."""
    model = Backbone()
    x, y = samples(1200, torch.arange(6))
    with torch.no_grad():  # a fixed random projection is good enough as a backbone
        model.features(x)
    return model, (x, y)


model_ft, _ = pretrained()
sets = {
    "train": TensorDataset(*samples(1200, torch.arange(12))),
    "val": TensorDataset(*samples(400, torch.arange(12))),
}
dataloaders = {
    phase: DataLoader(data, batch_size=24, shuffle=phase == "train") for phase, data in sets.items()
}

if args.fault == "old-head":
    # the optimizer is built before the head is replaced, and holds the old one
    optimizer_ft = optim.SGD(model_ft.fc.parameters(), lr=0.05, momentum=0.9)
for param in model_ft.features.parameters():
    param.requires_grad = False
model_ft.fc = nn.Linear(model_ft.fc.in_features, 12)
if args.fault != "old-head":
    optimizer_ft = optim.SGD(model_ft.fc.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
step = 1 if args.fault == "schedule-per-batch" else 3
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=step, gamma=0.5)


def train_model(model, criterion, optimizer, scheduler, num_epochs=6):
    best_model_wts = copy.deepcopy(model.state_dict())
    best_acc = 0.0
    for epoch in range(num_epochs):
        print(f"Epoch {epoch}/{num_epochs - 1}")
        print("-" * 10)
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss = 0.0
            running_corrects = 0
            for batch, (inputs, labels) in enumerate(dataloaders[phase]):
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                        if args.fault == "schedule-per-batch":
                            scheduler.step()
                        if batch % 10 == 0:
                            print(f"  batch {batch} loss {loss.item()}")
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            if phase == "train" and args.fault != "schedule-per-batch":
                scheduler.step()
            epoch_loss = running_loss / len(sets[phase])
            epoch_acc = running_corrects.double() / len(sets[phase])
            print(f"{phase} Loss: {epoch_loss} Acc: {epoch_acc:.4f}")
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_model_wts = copy.deepcopy(model.state_dict())
        print()
    print(f"Best val Acc: {best_acc:4f}")
    model.load_state_dict(best_model_wts)
    return model


model_ft = train_model(model_ft, criterion, optimizer_ft, exp_lr_scheduler)
