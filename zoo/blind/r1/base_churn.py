import numpy as np
import torch
import torch.nn as nn

SEED = 5
np.random.seed(SEED)
torch.manual_seed(SEED)

# ------------------------------------------------------------------ data
N = 4000
tenure = np.random.gamma(2.0, 18.0, N)
bill = np.random.normal(70, 25, N)
calls = np.random.poisson(1.5, N).astype(float)
usage = np.random.normal(300, 90, N)
plan = np.random.randint(0, 4, N)
region = np.random.randint(0, 10, N)
device = np.random.randint(0, 6, N)
plan_w = np.array([0.9, -1.2, 0.2, 1.4])
region_w = np.random.normal(0, 1.2, 10)
device_w = np.random.normal(0, 1.2, 6)
score = (-0.05 * tenure + 0.03 * (bill - 70) + 0.8 * (calls - 1.5) + 1.0 * np.sin(usage / 60.0)
         + plan_w[plan] + region_w[region] + device_w[device])
churn = (score + 0.4 * np.random.randn(N) > np.quantile(score, 0.9)).astype(np.float32)

num = np.stack([tenure, bill, calls, usage], 1).astype(np.float32)
cat = np.stack([plan, region, device], 1)
perm = np.random.permutation(N)
tr, va = perm[:3200], perm[3200:]

mean, std = num[tr].mean(0), num[tr].std(0)
num_tr = (num[tr] - mean) / std
num_va = (num[va] - mean) / std
X_tr, C_tr, Y_tr = torch.tensor(num_tr), torch.tensor(cat[tr]), torch.tensor(churn[tr])
X_va, C_va, Y_va = torch.tensor(num_va), torch.tensor(cat[va]), torch.tensor(churn[va])


# ------------------------------------------------------------------ model
class ChurnNet(nn.Module):
    def __init__(self, cardinalities, n_num):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c, 6) for c in cardinalities])
        self.body = nn.Sequential(
            nn.Linear(n_num + 6 * len(cardinalities), 64), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(64, 32), nn.ReLU(),
            nn.Linear(32, 1))

    def forward(self, x, c):
        e = [emb(c[:, j]) for j, emb in enumerate(self.embs)]
        return self.body(torch.cat([x] + e, dim=1)).squeeze(1)


net = ChurnNet([4, 10, 6], 4)
n_pos = Y_tr.sum()
pos_weight = (len(Y_tr) - n_pos) / n_pos
loss_fn = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
opt = torch.optim.Adam(net.parameters(), lr=4e-3)

# ------------------------------------------------------------------ training
for epoch in range(8):
    net.train()
    losses = []
    for idx in torch.randperm(len(X_tr)).split(64):
        logit = net(X_tr[idx], C_tr[idx])
        loss = loss_fn(logit, Y_tr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        logit = net(X_va, C_va)
        vloss = loss_fn(logit, Y_va).item()
        pred = logit > 0
        rec = (pred & (Y_va == 1)).sum() / (Y_va == 1).sum()
        spec = (~pred & (Y_va == 0)).sum() / (Y_va == 0).sum()
    print(f"epoch {epoch + 1:2d}  train {np.mean(losses):.4f}  val {vloss:.4f}  recall {rec:.3f}  balanced acc {(rec + spec) / 2:.3f}")
