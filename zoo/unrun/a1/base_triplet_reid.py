"""Person re-identification with batch-hard triplets, written as a Lightning-like module with an own fit()."""
import copy
import random
from collections import defaultdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler
from torchvision import models, transforms


class CropDataset(Dataset):
    """crops (N, H, W, 3) uint8, pids (N,) person ids."""

    def __init__(self, crops, pids, transform):
        self.crops, self.pids, self.transform = crops, pids, transform

    def __len__(self):
        return len(self.pids)

    def __getitem__(self, i):
        return self.transform(self.crops[i]), int(self.pids[i])


class PKSampler(Sampler):
    """Yields batches of P persons with K crops each."""

    def __init__(self, pids, p, k, seed=0):
        self.by_pid = defaultdict(list)
        for i, pid in enumerate(pids):
            self.by_pid[int(pid)].append(i)
        self.p, self.k = p, k
        self.rng = random.Random(seed)

    def __len__(self):
        return len(self.by_pid) // self.p

    def __iter__(self):
        persons = list(self.by_pid)
        self.rng.shuffle(persons)
        for b in range(len(self)):
            batch = []
            for pid in persons[b * self.p:(b + 1) * self.p]:
                own = self.by_pid[pid]
                batch += self.rng.sample(own, self.k) if len(own) >= self.k else self.rng.choices(own, k=self.k)
            yield batch


def batch_hard_triplet(emb, pids, margin):
    dist = torch.cdist(emb, emb)
    same = pids.unsqueeze(0) == pids.unsqueeze(1)
    eye = torch.eye(len(pids), dtype=torch.bool, device=emb.device)
    hardest_pos = dist.masked_fill(~(same & ~eye), float("-inf")).max(dim=1).values
    hardest_neg = dist.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_pos - hardest_neg + margin).mean()


class ReIDModule(nn.Module):
    def __init__(self, dim=256, margin=0.3, lr=3e-4, warmup_epochs=5, max_epochs=60):
        super().__init__()
        net = models.resnet18(weights="IMAGENET1K_V1")
        net.fc = nn.Linear(net.fc.in_features, dim)
        self.net = net
        self.margin, self.lr = margin, lr
        self.warmup_epochs, self.max_epochs = warmup_epochs, max_epochs

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)

    def training_step(self, batch):
        x, pids = batch
        return batch_hard_triplet(self(x), pids, self.margin)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.lr, weight_decay=5e-4)
        warm = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=self.warmup_epochs)
        cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.max_epochs - self.warmup_epochs)
        sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cos], milestones=[self.warmup_epochs])
        return opt, sched

    @torch.no_grad()
    def embed(self, loader, device):
        self.eval()
        embs, ids = [], []
        for x, pids in loader:
            embs.append(self(x.to(device)).cpu())
            ids.append(pids)
        return torch.cat(embs), torch.cat(ids)

    def validation_metrics(self, loader, device):
        """Rank-1 and mean average precision, every crop as query against all others."""
        emb, ids = self.embed(loader, device)
        sim = emb @ emb.t()
        sim.fill_diagonal_(-2.0)
        order = sim.argsort(dim=1, descending=True)[:, :-1]
        match = (ids[order] == ids.unsqueeze(1)).float()
        has_match = match.sum(dim=1) > 0
        match = match[has_match]
        rank1 = match[:, 0].mean().item()
        ranks = torch.arange(1, match.size(1) + 1)
        precision = match.cumsum(dim=1) / ranks
        ap = (precision * match).sum(dim=1) / match.sum(dim=1)
        return rank1, ap.mean().item()


def fit(module, train_dl, valid_dl, device):
    module.to(device)
    opt, sched = module.configure_optimizers()
    best_map, best_state = 0.0, None
    for epoch in range(module.max_epochs):
        module.train()
        losses = []
        for x, pids in train_dl:
            loss = module.training_step((x.to(device), pids.to(device)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        sched.step()
        rank1, mean_ap = module.validation_metrics(valid_dl, device)
        print(f"{epoch:2d} loss {np.mean(losses):.4f} rank1 {rank1:.4f} mAP {mean_ap:.4f}")
        if mean_ap > best_map:
            best_map = mean_ap
            best_state = copy.deepcopy(module.state_dict())
    module.load_state_dict(best_state)
    torch.save(best_state, "reid.pt")


if __name__ == "__main__":
    torch.manual_seed(4)
    data = np.load("crops.npz")
    crops, pids = data["crops"], data["pids"]
    persons = np.random.default_rng(4).permutation(np.unique(pids))
    held_out = persons[: len(persons) // 5]
    is_valid = np.isin(pids, held_out)
    norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    train_tf = transforms.Compose([transforms.ToTensor(), transforms.RandomHorizontalFlip(), norm,
                                   transforms.RandomErasing(p=0.3)])
    valid_tf = transforms.Compose([transforms.ToTensor(), norm])
    train_ds = CropDataset(crops[~is_valid], pids[~is_valid], train_tf)
    valid_ds = CropDataset(crops[is_valid], pids[is_valid], valid_tf)
    train_dl = DataLoader(train_ds, batch_sampler=PKSampler(train_ds.pids, p=16, k=4), num_workers=4)
    valid_dl = DataLoader(valid_ds, batch_size=128, num_workers=4)
    fit(ReIDModule(), train_dl, valid_dl, "cuda" if torch.cuda.is_available() else "cpu")
