# %% [markdown]
# Listwise learning to rank on an MSLR-WEB10K fold (ListNet, NDCG@10)

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_svmlight_file
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

FOLD = "MSLR-WEB10K/Fold1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
K, BATCH, EPOCHS, LR, PATIENCE = 10, 64, 50, 5e-4, 6
torch.manual_seed(0)


# %% Read a part and cut it into its queries
def read(part):
    x, y, qid = load_svmlight_file(f"{FOLD}/{part}.txt", query_id=True, n_features=136)
    x = x.toarray().astype(np.float32)
    x = np.sign(x) * np.log1p(np.abs(x))
    order = np.argsort(qid, kind="stable")
    x, y, qid = x[order], y[order].astype(np.float32), qid[order]
    cuts = np.flatnonzero(np.diff(qid)) + 1
    return list(zip(np.split(x, cuts), np.split(y, cuts)))


train, val, test = read("train"), read("vali"), read("test")
train = [(x, y) for x, y in train if y.max() > y.min()]
stacked = np.concatenate([x for x, _ in train])
MEAN, STD = stacked.mean(axis=0), stacked.std(axis=0) + 1e-6
del stacked
print(len(train), len(val), len(test), "queries")


def scale(part):
    return [(torch.from_numpy((x - MEAN) / STD), torch.from_numpy(y)) for x, y in part]


def collate(batch):
    xs, ys = zip(*batch)
    mask = pad_sequence([torch.ones(len(y), dtype=torch.bool) for y in ys], batch_first=True)
    return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True), mask


train_dl = DataLoader(scale(train), BATCH, shuffle=True, collate_fn=collate)
val_dl = DataLoader(scale(val), BATCH, collate_fn=collate)
test_dl = DataLoader(scale(test), BATCH, collate_fn=collate)


# %% Scorer: the same MLP for every document
class Scorer(nn.Module):
    def __init__(self, d, hidden=(256, 128), p=0.2):
        super().__init__()
        layers = []
        for h in hidden:
            layers += [nn.Linear(d, h), nn.LayerNorm(h), nn.ReLU(), nn.Dropout(p)]
            d = h
        self.net = nn.Sequential(*layers, nn.Linear(d, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


# %% ListNet: cross entropy between softmax of relevances and softmax of scores
def listnet(scores, y, mask):
    target = F.softmax(y.masked_fill(~mask, float("-inf")), dim=1)
    logp = F.log_softmax(scores.masked_fill(~mask, float("-inf")), dim=1)
    return -(target * logp.masked_fill(~mask, 0.0)).sum(dim=1).mean()


# %% NDCG with exponential gain; queries without relevant documents are left out
def ndcg(scores, y, mask, k):
    scores = scores.masked_fill(~mask, float("-inf"))
    gain = (2 ** y - 1).masked_fill(~mask, 0.0)
    k = min(k, y.size(1))
    discount = 1 / torch.log2(torch.arange(k, device=y.device) + 2.0)
    top = scores.topk(k, dim=1).indices
    dcg = (gain.gather(1, top) * discount).sum(dim=1)
    ideal = (gain.topk(k, dim=1).values * discount).sum(dim=1)
    keep = ideal > 0
    return dcg[keep] / ideal[keep]


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    values = []
    for x, y, mask in loader:
        x, y, mask = x.to(DEVICE), y.to(DEVICE), mask.to(DEVICE)
        values.append(ndcg(model(x), y, mask, K))
    return torch.cat(values).mean().item()


# %% Train
model = Scorer(136).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-4)
best, bad = 0.0, 0
for epoch in range(EPOCHS):
    model.train()
    total, count = 0.0, 0
    for x, y, mask in train_dl:
        x, y, mask = x.to(DEVICE), y.to(DEVICE), mask.to(DEVICE)
        loss = listnet(model(x), y, mask)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * len(x)
        count += len(x)
    score = evaluate(model, val_dl)
    print(f"epoch {epoch:2d} loss {total / count:.4f} val NDCG@{K} {score:.4f}")
    if score > best:
        best, bad = score, 0
        torch.save({"model": model.state_dict(), "mean": MEAN, "std": STD}, "listnet.pt")
    else:
        bad += 1
    if bad == PATIENCE:
        break

# %% Test
state = torch.load("listnet.pt", map_location=DEVICE, weights_only=False)
model.load_state_dict(state["model"])
print(f"test NDCG@{K} {evaluate(model, test_dl):.4f}")
