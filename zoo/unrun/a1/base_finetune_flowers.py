# Fine-tune a pretrained ResNet-18 on a folder of flower photos.
# Backbone: first stages frozen, layer4 small lr, new head larger lr.
import copy
import random
from pathlib import Path

import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms

CONFIG = {
    "root": "data/flowers",          # data/flowers/<class>/<image>.jpg
    "image_size": 224,
    "batch_size": 32,
    "accum_steps": 2,
    "epochs": 15,
    "lr_head": 1e-3,
    "lr_backbone": 1e-4,
    "weight_decay": 1e-4,
    "clip_norm": 1.0,
    "patience": 4,
    "valid_fraction": 0.2,
    "seed": 13,
    "ckpt": "flowers_resnet18.pt",
}

random.seed(CONFIG["seed"])
torch.manual_seed(CONFIG["seed"])
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

imagenet_norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
train_tf = transforms.Compose([
    transforms.RandomResizedCrop(CONFIG["image_size"], scale=(0.6, 1.0)),
    transforms.RandomHorizontalFlip(),
    transforms.ColorJitter(0.2, 0.2, 0.2),
    transforms.ToTensor(),
    imagenet_norm,
])
valid_tf = transforms.Compose([
    transforms.Resize(256),
    transforms.CenterCrop(CONFIG["image_size"]),
    transforms.ToTensor(),
    imagenet_norm,
])


class FlowerDataset(Dataset):
    def __init__(self, items, transform):
        self.items = items
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        path, label = self.items[i]
        img = Image.open(path).convert("RGB")
        return self.transform(img), label


classes = sorted(d.name for d in Path(CONFIG["root"]).iterdir() if d.is_dir())
class_to_idx = {c: i for i, c in enumerate(classes)}
train_items, valid_items = [], []
for c in classes:
    files = sorted((Path(CONFIG["root"]) / c).glob("*.jpg"))
    random.shuffle(files)
    n_valid = max(1, int(len(files) * CONFIG["valid_fraction"]))
    valid_items += [(f, class_to_idx[c]) for f in files[:n_valid]]
    train_items += [(f, class_to_idx[c]) for f in files[n_valid:]]

train_dl = DataLoader(FlowerDataset(train_items, train_tf), CONFIG["batch_size"],
                      shuffle=True, num_workers=4, drop_last=True)
valid_dl = DataLoader(FlowerDataset(valid_items, valid_tf), CONFIG["batch_size"], num_workers=4)

model = models.resnet18(weights=models.ResNet18_Weights.IMAGENET1K_V1)
for p in model.parameters():
    p.requires_grad = False
for p in model.layer4.parameters():
    p.requires_grad = True
model.fc = nn.Linear(model.fc.in_features, len(classes))
model.to(device)

frozen = [model.bn1, model.layer1, model.layer2, model.layer3]


def set_train_mode():
    model.train()
    for m in frozen:
        m.eval()


optimizer = torch.optim.AdamW(
    [
        {"params": model.layer4.parameters(), "lr": CONFIG["lr_backbone"]},
        {"params": model.fc.parameters(), "lr": CONFIG["lr_head"]},
    ],
    weight_decay=CONFIG["weight_decay"],
)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=1)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
trainable = [p for p in model.parameters() if p.requires_grad]

best_loss, best_state, bad_epochs = float("inf"), None, 0
for epoch in range(CONFIG["epochs"]):
    set_train_mode()
    running = 0.0
    optimizer.zero_grad()
    for i, (images, labels) in enumerate(train_dl):
        images, labels = images.to(device), labels.to(device)
        loss = criterion(model(images), labels)
        (loss / CONFIG["accum_steps"]).backward()
        running += loss.item()
        if (i + 1) % CONFIG["accum_steps"] == 0:
            torch.nn.utils.clip_grad_norm_(trainable, CONFIG["clip_norm"])
            optimizer.step()
            optimizer.zero_grad()

    model.eval()
    val_loss, hits, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in valid_dl:
            images, labels = images.to(device), labels.to(device)
            out = model(images)
            val_loss += nn.functional.cross_entropy(out, labels, reduction="sum").item()
            hits += (out.argmax(1) == labels).sum().item()
            count += len(labels)
    val_loss /= count
    scheduler.step(val_loss)
    print(f"epoch {epoch}: train {running / len(train_dl):.4f} "
          f"valid {val_loss:.4f} acc {hits / count:.3f}")

    if val_loss < best_loss:
        best_loss, bad_epochs = val_loss, 0
        best_state = copy.deepcopy(model.state_dict())
    else:
        bad_epochs += 1
        if bad_epochs >= CONFIG["patience"]:
            break

model.load_state_dict(best_state)
torch.save({"state_dict": best_state, "classes": classes, "config": CONFIG}, CONFIG["ckpt"])
