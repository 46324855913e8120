# Fine-tuning a ResNet-50 on a small pet breed dataset: first the head, then head + last stage
import copy
from pathlib import Path

import pandas as pd
import torch
import torch.nn as nn
from PIL import Image
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms

SEED = 42
ROOT = Path("data/pets")
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
torch.manual_seed(SEED)

normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
data_transforms = {
    "train": transforms.Compose([
        transforms.RandomResizedCrop(224, scale=(0.6, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(0.2, 0.2, 0.2),
        transforms.ToTensor(),
        normalize,
    ]),
    "val": transforms.Compose([
        transforms.Resize(256),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        normalize,
    ]),
}


class PetDataset(Dataset):
    def __init__(self, frame, class_to_idx, transform):
        self.files = frame["filename"].tolist()
        self.labels = [class_to_idx[b] for b in frame["breed"]]
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, idx):
        image = Image.open(ROOT / "images" / self.files[idx]).convert("RGB")
        return self.transform(image), self.labels[idx]


df = pd.read_csv(ROOT / "labels.csv").drop_duplicates("filename")
train_df, val_df = train_test_split(df, test_size=0.2, stratify=df["breed"], random_state=SEED)
classes = sorted(df["breed"].unique())
class_to_idx = {c: i for i, c in enumerate(classes)}

datasets = {
    "train": PetDataset(train_df, class_to_idx, data_transforms["train"]),
    "val": PetDataset(val_df, class_to_idx, data_transforms["val"]),
}
loaders = {
    "train": DataLoader(datasets["train"], batch_size=32, shuffle=True, num_workers=4),
    "val": DataLoader(datasets["val"], batch_size=64, shuffle=False, num_workers=4),
}

counts = train_df["breed"].value_counts().reindex(classes)
class_weights = torch.tensor((len(train_df) / (len(classes) * counts)).values, dtype=torch.float32)


def build_model(num_classes):
    model = models.resnet50(weights=models.ResNet50_Weights.IMAGENET1K_V2)
    for param in model.parameters():
        param.requires_grad = False
    model.fc = nn.Linear(model.fc.in_features, num_classes)
    return model


def set_train(model):
    # batches are small, the ImageNet statistics stay as they are
    model.train()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()


def validate(model):
    model.eval()
    correct, n = 0, 0
    with torch.no_grad():
        for inputs, labels in loaders["val"]:
            preds = model(inputs.to(device)).argmax(1)
            correct += (preds == labels.to(device)).sum().item()
            n += len(labels)
    return correct / n


def fit(model, optimizer, epochs, best_acc, best_wts):
    criterion = nn.CrossEntropyLoss(weight=class_weights.to(device))
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.3, patience=2)
    for epoch in range(epochs):
        set_train(model)
        running_loss = 0.0
        for inputs, labels in loaders["train"]:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * inputs.size(0)
        val_acc = validate(model)
        scheduler.step(val_acc)
        print(f"epoch {epoch}: loss {running_loss / len(datasets['train']):.4f} val acc {val_acc:.4f}")
        if val_acc > best_acc:
            best_acc = val_acc
            best_wts = copy.deepcopy(model.state_dict())
    return best_acc, best_wts


model = build_model(len(classes)).to(device)
print("phase 1: head")
optimizer = torch.optim.AdamW(model.fc.parameters(), lr=1e-3)
best_acc, best_wts = fit(model, optimizer, 5, 0.0, None)

print("phase 2: head and layer4")
for param in model.layer4.parameters():
    param.requires_grad = True
optimizer = torch.optim.AdamW([
    {"params": model.fc.parameters(), "lr": 1e-3},
    {"params": model.layer4.parameters(), "lr": 1e-4},
])
best_acc, best_wts = fit(model, optimizer, 20, best_acc, best_wts)

model.load_state_dict(best_wts)
torch.save({"state_dict": best_wts, "classes": classes}, "pets_resnet50.pt")
print(f"best val acc {best_acc:.4f}")
