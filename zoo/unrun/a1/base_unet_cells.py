# %% [markdown]
# U-Net for nuclei segmentation with three classes (background, nucleus, border).
# Images are stored as uint8 arrays: images.npy (N, H, W, 3), masks.npy (N, H, W), 255 = unlabelled.

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = 7
N_CLASSES = 3
IGNORE = 255
torch.manual_seed(SEED)
np.random.seed(SEED)
device = "cuda" if torch.cuda.is_available() else "cpu"

# %%
images = np.load("nuclei/images.npy")
masks = np.load("nuclei/masks.npy")
slide_ids = np.load("nuclei/slide_ids.npy")      # several patches per slide

slides = np.unique(slide_ids)
np.random.shuffle(slides)
n_val = len(slides) // 5
is_val = np.isin(slide_ids, slides[:n_val])
train_x, train_m = images[~is_val], masks[~is_val]
val_x, val_m = images[is_val], masks[is_val]

mean = train_x.mean(axis=(0, 1, 2)) / 255.0
std = train_x.std(axis=(0, 1, 2)) / 255.0

# pixel frequencies of the classes in the training masks
counts = np.array([(train_m == c).sum() for c in range(N_CLASSES)], dtype=np.float64)
class_w = torch.tensor(counts.sum() / (N_CLASSES * counts), dtype=torch.float32, device=device)


# %%
class PatchDataset(Dataset):
    def __init__(self, x, m, augment):
        self.x, self.m, self.augment = x, m, augment

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        img = self.x[i].astype(np.float32) / 255.0
        img = (img - mean) / std
        msk = self.m[i]
        if self.augment:
            if torch.rand(1).item() < 0.5:
                img, msk = img[:, ::-1], msk[:, ::-1]
            k = int(torch.randint(0, 4, (1,)))
            img, msk = np.rot90(img, k, axes=(0, 1)), np.rot90(msk, k, axes=(0, 1))
        img = torch.from_numpy(np.ascontiguousarray(img.transpose(2, 0, 1))).float()
        msk = torch.from_numpy(np.ascontiguousarray(msk)).long()
        return img, msk


train_dl = DataLoader(PatchDataset(train_x, train_m, True), batch_size=8, shuffle=True, num_workers=2)
val_dl = DataLoader(PatchDataset(val_x, val_m, False), batch_size=8, num_workers=2)


# %%
def block(ci, co):
    return nn.Sequential(
        nn.Conv2d(ci, co, 3, padding=1), nn.BatchNorm2d(co), nn.ReLU(inplace=True),
        nn.Conv2d(co, co, 3, padding=1), nn.BatchNorm2d(co), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.enc1, self.enc2, self.enc3 = block(3, c), block(c, 2 * c), block(2 * c, 4 * c)
        self.up2 = nn.ConvTranspose2d(4 * c, 2 * c, 2, stride=2)
        self.dec2 = block(4 * c, 2 * c)
        self.up1 = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.dec1 = block(2 * c, c)
        self.head = nn.Conv2d(c, N_CLASSES, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        e3 = self.enc3(F.max_pool2d(e2, 2))
        d2 = self.dec2(torch.cat([self.up2(e3), e2], dim=1))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], dim=1))
        return self.head(d1)


def dice_loss(logits, target, eps=1.0):
    valid = (target != IGNORE)
    onehot = F.one_hot(target.masked_fill(~valid, 0), N_CLASSES).permute(0, 3, 1, 2).float()
    valid = valid.unsqueeze(1).float()
    probs = logits.softmax(dim=1) * valid
    onehot = onehot * valid
    inter = (probs * onehot).sum(dim=(0, 2, 3))
    denom = probs.sum(dim=(0, 2, 3)) + onehot.sum(dim=(0, 2, 3))
    return 1 - ((2 * inter + eps) / (denom + eps)).mean()


# %%
model = UNet().to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=2e-3, epochs=30, steps_per_epoch=len(train_dl))
ce = nn.CrossEntropyLoss(weight=class_w, ignore_index=IGNORE)

best_iou = -1.0
for epoch in range(30):
    model.train()
    for img, msk in train_dl:
        img, msk = img.to(device), msk.to(device)
        logits = model(img)
        loss = ce(logits, msk) + dice_loss(logits, msk)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()

    model.eval()
    conf = torch.zeros(N_CLASSES, N_CLASSES, dtype=torch.long)
    with torch.no_grad():
        for img, msk in val_dl:
            pred = model(img.to(device)).argmax(dim=1).cpu()
            keep = msk != IGNORE
            idx = msk[keep] * N_CLASSES + pred[keep]
            conf += torch.bincount(idx, minlength=N_CLASSES ** 2).view(N_CLASSES, N_CLASSES)
    tp = conf.diag().float()
    union = conf.sum(0).float() + conf.sum(1).float() - tp
    iou = (tp / union.clamp(min=1)).mean().item()
    print(f"epoch {epoch}  last batch loss {loss.item():.4f}  val mIoU {iou:.4f}")
    if iou > best_iou:
        best_iou = iou
        torch.save(model.state_dict(), "unet_best.pt")
