import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "csv": "loans.csv",
    "target": "default",
    "numeric": ["income", "amount", "age", "utilisation", "num_accounts", "months_employed"],
    "categorical": ["purpose", "home", "state"],
    "batch_size": 512,
    "epochs": 60,
    "lr": 1e-3,
    "weight_decay": 1e-5,
    "dropout": 0.2,
    "patience": 8,
    "seed": 7,
}


class LoanNet(nn.Module):
    def __init__(self, n_num, cards, dropout):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c, min(32, (c + 1) // 2)) for c in cards])
        width = n_num + sum(e.embedding_dim for e in self.embs)
        self.net = nn.Sequential(
            nn.Linear(width, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(64, 1),
        )

    def forward(self, num, cat):
        parts = [num] + [e(cat[:, i]) for i, e in enumerate(self.embs)]
        return self.net(torch.cat(parts, dim=1)).squeeze(1)


def load(cfg):
    df = pd.read_csv(cfg["csv"]).drop_duplicates()
    # every applicant has one or more loans: keep one applicant's loans on one side
    people = df["applicant_id"].unique()
    fit_ids, test_ids = train_test_split(people, test_size=0.2, random_state=cfg["seed"])
    fit_ids, val_ids = train_test_split(fit_ids, test_size=0.2, random_state=cfg["seed"])
    return [df[df["applicant_id"].isin(ids)].copy() for ids in (fit_ids, val_ids, test_ids)]


def prepare(cfg, train, val, test):
    num, cat = cfg["numeric"], cfg["categorical"]
    median = train[num].median()
    filled = train[num].fillna(median)
    mean, std = filled.mean(), filled.std().replace(0, 1.0)
    maps = {c: {v: i + 1 for i, v in enumerate(sorted(train[c].dropna().unique()))} for c in cat}
    out = []
    for part in (train, val, test):
        x = ((part[num].fillna(median) - mean) / std).to_numpy(np.float32)
        c = np.stack([part[k].map(maps[k]).fillna(0).to_numpy(np.int64) for k in cat], axis=1)
        y = part[cfg["target"]].to_numpy(np.float32)
        out.append(TensorDataset(torch.from_numpy(x), torch.from_numpy(c), torch.from_numpy(y)))
    return out, [len(maps[k]) + 1 for k in cat]


def predict(model, loader, device):
    model.eval()
    scores, labels = [], []
    with torch.no_grad():
        for num, cat, y in loader:
            logits = model(num.to(device), cat.to(device))
            scores.append(torch.sigmoid(logits).cpu())
            labels.append(y)
    return torch.cat(scores).numpy(), torch.cat(labels).numpy()


def run(cfg):
    torch.manual_seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, val, test = load(cfg)
    (train_ds, val_ds, test_ds), cards = prepare(cfg, train, val, test)
    train_dl = DataLoader(train_ds, cfg["batch_size"], shuffle=True, drop_last=True)
    val_dl = DataLoader(val_ds, 4096)
    test_dl = DataLoader(test_ds, 4096)

    model = LoanNet(len(cfg["numeric"]), cards, cfg["dropout"]).to(device)
    y = train_ds.tensors[2]
    pos_weight = (y == 0).sum() / (y == 1).sum()
    criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight.to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])

    best, wait = 0.0, 0
    for epoch in range(cfg["epochs"]):
        model.train()
        losses = []
        for num, cat, y in train_dl:
            num, cat, y = num.to(device), cat.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(model(num, cat), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scores, labels = predict(model, val_dl, device)
        auc = roc_auc_score(labels, scores)
        print(f"{epoch:3d} loss {np.mean(losses):.4f} val auc {auc:.4f}")
        if auc > best:
            best, wait = auc, 0
            torch.save(model.state_dict(), "loan.pt")
        else:
            wait += 1
            if wait >= cfg["patience"]:
                break

    model.load_state_dict(torch.load("loan.pt", map_location=device))
    scores, labels = predict(model, test_dl, device)
    print(f"test auc {roc_auc_score(labels, scores):.4f} ap {average_precision_score(labels, scores):.4f}")


if __name__ == "__main__":
    run(CONFIG)
