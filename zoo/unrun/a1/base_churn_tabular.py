# Customer churn (about 6 % positive): categorical embeddings + standardised numbers, pandas preprocessing.
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

SEED = 2023
np.random.seed(SEED)
torch.manual_seed(SEED)

CAT_COLS = ["plan", "region", "payment", "device"]
NUM_COLS = ["age", "tenure_months", "monthly_fee", "calls", "complaints", "data_gb"]

df = pd.read_csv("churn.csv")
df = df.drop_duplicates(subset="customer_id").reset_index(drop=True)
df["churned"] = (df["churned"] == "yes").astype(int)

train_df, rest_df = train_test_split(df, test_size=0.3, stratify=df["churned"], random_state=SEED)
valid_df, test_df = train_test_split(rest_df, test_size=0.5, stratify=rest_df["churned"], random_state=SEED)

# categories seen in training get 1..K, everything else 0
vocab = {}
for col in CAT_COLS:
    vocab[col] = {v: i + 1 for i, v in enumerate(sorted(train_df[col].dropna().unique()))}

num_median = train_df[NUM_COLS].median()
num_mean = train_df[NUM_COLS].fillna(num_median).mean()
num_std = train_df[NUM_COLS].fillna(num_median).std().replace(0, 1.0)


def encode(frame):
    cats = np.stack([frame[c].map(vocab[c]).fillna(0).astype(int).to_numpy() for c in CAT_COLS], axis=1)
    nums = (frame[NUM_COLS].fillna(num_median) - num_mean) / num_std
    return TensorDataset(
        torch.from_numpy(cats).long(),
        torch.from_numpy(nums.to_numpy(dtype=np.float32)),
        torch.from_numpy(frame["churned"].to_numpy(dtype=np.float32)),
    )


train_dl = DataLoader(encode(train_df), batch_size=256, shuffle=True)
valid_dl = DataLoader(encode(valid_df), batch_size=1024)
test_dl = DataLoader(encode(test_df), batch_size=1024)


class ChurnNet(nn.Module):
    def __init__(self, cardinalities, n_num, hidden=(128, 64), dropout=0.3):
        super().__init__()
        self.embeddings = nn.ModuleList(
            [nn.Embedding(k + 1, min(16, (k + 1) // 2 + 1)) for k in cardinalities]
        )
        width = sum(e.embedding_dim for e in self.embeddings) + n_num
        layers = []
        for h in hidden:
            layers += [nn.Linear(width, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(dropout)]
            width = h
        self.mlp = nn.Sequential(*layers)
        self.out = nn.Linear(width, 1)

    def forward(self, cats, nums):
        parts = [emb(cats[:, i]) for i, emb in enumerate(self.embeddings)]
        x = torch.cat(parts + [nums], dim=1)
        return self.out(self.mlp(x)).squeeze(1)


model = ChurnNet([len(vocab[c]) for c in CAT_COLS], len(NUM_COLS))
n_pos = int(train_df["churned"].sum())
n_neg = len(train_df) - n_pos
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(n_neg / n_pos))

decay = [p for n, p in model.named_parameters() if p.ndim > 1]
no_decay = [p for n, p in model.named_parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 1e-2}, {"params": no_decay, "weight_decay": 0.0}], lr=2e-3
)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=2)


@torch.no_grad()
def predict(loader):
    model.eval()
    probs, labels = [], []
    for cats, nums, y in loader:
        probs.append(torch.sigmoid(model(cats, nums)))
        labels.append(y)
    return torch.cat(probs).numpy(), torch.cat(labels).numpy()


best_ap, since_best = 0.0, 0
for epoch in range(50):
    model.train()
    total = 0.0
    for cats, nums, y in train_dl:
        optimizer.zero_grad()
        loss = criterion(model(cats, nums), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    probs, labels = predict(valid_dl)
    ap = average_precision_score(labels, probs)
    scheduler.step(ap)
    print(f"epoch {epoch:02d} loss {total / len(train_df):.4f} valid AP {ap:.4f}")
    if ap > best_ap:
        best_ap, since_best = ap, 0
        torch.save(model.state_dict(), "churn.pt")
    else:
        since_best += 1
        if since_best > 7:
            break

model.load_state_dict(torch.load("churn.pt"))
probs, labels = predict(valid_dl)
grid = np.linspace(0.05, 0.95, 91)
threshold = grid[int(np.argmax([f1_score(labels, probs >= t) for t in grid]))]
probs, labels = predict(test_dl)
print("test AP", average_precision_score(labels, probs), "F1", f1_score(labels, probs >= threshold))
