"""Faces (UTKFace): age regression, gender and ethnicity classification with one shared ResNet."""
import os
import random
from glob import glob

import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


class Faces(Dataset):
    """Files are named age_gender_race_date.jpg; a label of -1 means unknown."""

    def __init__(self, files, age_mean, age_std, train):
        self.files, self.age_mean, self.age_std = files, age_mean, age_std
        steps = [transforms.RandomResizedCrop(160, scale=(0.8, 1.0)), transforms.RandomHorizontalFlip()]
        if not train:
            steps = [transforms.Resize(176), transforms.CenterCrop(160)]
        self.tf = transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(*IMAGENET)])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        age, gender, race = labels_of(self.files[i])
        x = self.tf(Image.open(self.files[i]).convert("RGB"))
        return x, torch.tensor((age - self.age_mean) / self.age_std), torch.tensor(gender), torch.tensor(race)


def labels_of(path):
    age, gender, race = os.path.basename(path).split("_")[:3]
    return float(age), int(gender), int(race)


class MultiTaskNet(nn.Module):
    def __init__(self, n_gender=2, n_race=5):
        super().__init__()
        self.backbone = models.resnet34(weights=models.ResNet34_Weights.IMAGENET1K_V1)
        dim = self.backbone.fc.in_features
        self.backbone.fc = nn.Identity()
        self.age = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, 1))
        self.gender = nn.Linear(dim, n_gender)
        self.race = nn.Linear(dim, n_race)
        # homoscedastic uncertainty: one log variance per task
        self.log_var = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        h = self.backbone(x)
        return self.age(h).squeeze(1), self.gender(h), self.race(h)


class Trainer:
    def __init__(self, root="UTKFace", epochs=20, batch_size=64, seed=5):
        random.seed(seed)
        torch.manual_seed(seed)
        self.epochs = epochs
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        files = sorted(f for f in glob(os.path.join(root, "*.jpg")) if os.path.basename(f).count("_") == 3)
        random.shuffle(files)
        a, b = int(0.8 * len(files)), int(0.9 * len(files))
        train, val, test = files[:a], files[a:b], files[b:]
        ages = torch.tensor([labels_of(f)[0] for f in train])
        self.age_mean, self.age_std = ages.mean().item(), ages.std().item()
        self.train_dl = DataLoader(Faces(train, self.age_mean, self.age_std, True), batch_size,
                                   shuffle=True, num_workers=8, drop_last=True)
        self.val_dl = DataLoader(Faces(val, self.age_mean, self.age_std, False), 128, num_workers=8)
        self.test_dl = DataLoader(Faces(test, self.age_mean, self.age_std, False), 128, num_workers=8)
        self.net = MultiTaskNet().to(self.device)
        base = list(self.net.backbone.parameters())
        heads = [p for n, p in self.net.named_parameters() if not n.startswith("backbone")]
        self.opt = torch.optim.Adam([{"params": base, "lr": 1e-4}, {"params": heads, "lr": 1e-3}])
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=8, gamma=0.3)

    def losses(self, out, age, gender, race):
        age_out, gender_out, race_out = out
        return torch.stack([
            F.mse_loss(age_out, age),
            F.cross_entropy(gender_out, gender),
            F.cross_entropy(race_out, race, ignore_index=-1),
        ])

    def train_epoch(self):
        self.net.train()
        sums = torch.zeros(3)
        for batch in self.train_dl:
            x, age, gender, race = (t.to(self.device) for t in batch)
            parts = self.losses(self.net(x), age, gender, race)
            s = self.net.log_var
            loss = (torch.exp(-s) * parts + s).sum()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            sums += parts.detach().cpu()
        return (sums / len(self.train_dl)).tolist()

    @torch.no_grad()
    def evaluate(self, loader):
        self.net.eval()
        err = g_ok = r_ok = n = n_race = 0
        for x, age, gender, race in loader:
            a, g, r = (t.cpu() for t in self.net(x.to(self.device)))
            err += ((a - age).abs() * self.age_std).sum().item()
            g_ok += (g.argmax(1) == gender).sum().item()
            known = race >= 0
            r_ok += ((r.argmax(1) == race) & known).sum().item()
            n_race += known.sum().item()
            n += len(age)
        return err / n, g_ok / n, r_ok / max(n_race, 1)

    def fit(self):
        best = float("inf")
        for epoch in range(self.epochs):
            parts = self.train_epoch()
            self.sched.step()
            mae, g, r = self.evaluate(self.val_dl)
            score = mae / self.age_std + (1 - g) + (1 - r)
            print(epoch, [round(p, 3) for p in parts], f"MAE {mae:.2f} gender {g:.3f} race {r:.3f}")
            if score < best:
                best = score
                torch.save({"net": self.net.state_dict(), "age": (self.age_mean, self.age_std)}, "faces.pt")
        self.net.load_state_dict(torch.load("faces.pt", map_location=self.device)["net"])
        print("test MAE %.2f gender %.3f race %.3f" % self.evaluate(self.test_dl))


if __name__ == "__main__":
    Trainer().fit()
