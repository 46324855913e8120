import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

torch.manual_seed(7)
rng = np.random.default_rng(7)

COUNTRIES = ["PRT", "GBR", "FRA", "ESP", "DEU", "ITA", "IRL", "BEL", "BRA", "NLD"]
SEGMENTS = ["Online TA", "Offline TA", "Groups", "Direct", "Corporate"]
N, N_AGENTS = 3000, 900


def make_bookings():
    country = rng.choice(COUNTRIES, N, p=[.3, .13, .12, .1, .09, .07, .06, .05, .05, .03])
    segment = rng.choice(SEGMENTS, N, p=[.45, .2, .15, .12, .08])
    agent = rng.integers(0, N_AGENTS, N)
    lead = rng.gamma(1.2, 90, N)
    adr = rng.normal(105, 35, N).clip(20)
    requests = rng.poisson(0.6, N)
    company = rng.integers(0, 60000, N).astype(float)
    children = rng.poisson(0.3, N).astype(float)
    c_eff = dict(zip(COUNTRIES, [1.8, -1.4, -0.9, 0.9, -1.6, 1.2, -1.2, -0.4, 1.5, -0.8]))
    s_eff = dict(zip(SEGMENTS, [0.6, -0.8, 1.5, -1.6, -1.2]))
    a_eff = rng.normal(0, 0.3, N_AGENTS)
    z = -0.7 + 0.012 * (lead - 108) + 0.008 * (adr - 105) - 0.8 * requests + 0.3 * children
    z = z + np.array([c_eff[c] for c in country]) + np.array([s_eff[s] for s in segment]) + a_eff[agent]
    y = (rng.random(N) < 1 / (1 + np.exp(-1.3 * z))).astype(np.float32)
    children[rng.random(N) < 0.01] = np.nan
    numeric = np.stack([lead, adr, requests, company, children], 1)
    return numeric, country, segment, agent, y


numeric, country, segment, agent, y = make_bookings()
perm = rng.permutation(N)
tr, va = perm[:2200], perm[2200:]

numeric = np.nan_to_num(numeric, nan=0.0)
mu, sd = numeric[tr].mean(0), numeric[tr].std(0)
numeric = (numeric - mu) / sd


def encode(values, known):
    table = {v: i for i, v in enumerate(known)}
    return np.array([table[v] for v in values])


def first_seen(values):
    return list(dict.fromkeys(values))


known_country, known_segment = first_seen(country[tr]), first_seen(segment[tr])
cat_tr = np.stack([encode(country[tr], known_country), encode(segment[tr], known_segment)], 1)
cat_va = np.stack([encode(country[va], known_country), encode(segment[va], known_segment)], 1)

# cancellation rate per agent
total = np.bincount(agent[tr], weights=y[tr], minlength=N_AGENTS)
count = np.bincount(agent[tr], minlength=N_AGENTS)
prior = y[tr].mean()
rate_tr = (total[agent[tr]] - y[tr] + 5 * prior) / (count[agent[tr]] - 1 + 5)
rate_va = (total[agent[va]] + 5 * prior) / (count[agent[va]] + 5)

x_tr = torch.tensor(np.column_stack([numeric[tr], 4 * (rate_tr - prior)]), dtype=torch.float32)
x_va = torch.tensor(np.column_stack([numeric[va], 4 * (rate_va - prior)]), dtype=torch.float32)
c_tr, c_va = torch.tensor(cat_tr), torch.tensor(cat_va)
y_tr, y_va = torch.tensor(y[tr]), torch.tensor(y[va])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.country = nn.Embedding(len(COUNTRIES), 6)
        self.segment = nn.Embedding(len(SEGMENTS), 4)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, c):
        return self.mlp(torch.cat([x, self.country(c[:, 0]), self.segment(c[:, 1])], 1)).squeeze(1)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-4)
bce = nn.BCEWithLogitsLoss()
for epoch in range(8):
    net.train()
    order = torch.randperm(len(x_tr))
    tot = 0.0
    for i in range(0, len(order), 64):
        b = order[i:i + 64]
        loss = bce(net(x_tr[b], c_tr[b]), y_tr[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(b)
    net.eval()
    with torch.no_grad():
        p = net(x_va, c_va)
        p_tr = net(x_tr, c_tr)
    auc = roc_auc_score(y_va, np.nan_to_num(p.numpy()))
    auc_tr = roc_auc_score(y_tr, np.nan_to_num(p_tr.numpy()))
    print(f"epoch {epoch} loss {tot / len(order):.4f} val_loss {bce(p, y_va).item():.4f} auc {auc_tr:.3f} val_auc {auc:.3f}")
