"""Accelerate with `accumulate`, clipping through the accelerator and one-hot weights."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
torch.manual_seed(0)
images = torch.randn(512, 3, 8, 8)
labels = images[:, :, 0, 0].argmax(1)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
train_dl = DataLoader(TensorDataset(images[:400], labels[:400]), batch_size=16, shuffle=True)
val_dl = DataLoader(TensorDataset(images[400:], labels[400:]), batch_size=32)
model, optimizer, train_dl, val_dl = accelerator.prepare(model, optimizer, train_dl, val_dl)
for epoch in range(4):
    model.train()
    for image, label in train_dl:
        with accelerator.accumulate(model):
            logits = model(image)
            loss = F.cross_entropy(logits, label)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    for image, label in val_dl:
        with torch.no_grad():
            model(image)
