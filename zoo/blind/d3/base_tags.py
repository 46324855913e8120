# Tagging short documents (bag of words -> 20 tags). No DataLoader, just tensors.
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import f1_score

torch.manual_seed(2)
g = np.random.default_rng(2)
V, T = 400, 20
share = 0.30 * 0.82 ** np.arange(T)
topic = g.dirichlet(np.full(V, 0.05), size=T)
background = g.dirichlet(np.full(V, 0.5))


def docs(n):
    y = (g.random((n, T)) < share).astype(np.float32)
    x = np.zeros((n, V), np.float32)
    for i in range(n):
        mix = 2.5 * background + topic[y[i] > 0].sum(0)
        x[i] = g.multinomial(int(g.integers(20, 90)), mix / mix.sum())
    return torch.from_numpy(x), torch.from_numpy(y)


x_train, y_train = docs(4000)
x_val, y_val = docs(700)
x_test, y_test = docs(500)


def prep(x):
    x = torch.log1p(x)
    return 4.0 * x / x.norm(dim=1, keepdim=True)


model = nn.Sequential(nn.Linear(V, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, T))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()


@torch.no_grad()
def predict(x):
    model.eval()
    return torch.cat([torch.sigmoid(model(prep(b))) for b in x.split(32)])


def macro_f1(y, p, cuts):
    return f1_score(y.numpy(), (p > cuts).numpy(), average="macro", zero_division=0)


def tune_cuts(y, p):
    grid = torch.linspace(0.05, 0.9, 18)
    cuts = torch.full((T,), 0.5)
    for t in range(T):
        f = [f1_score(y[:, t].numpy(), (p[:, t] > c).numpy(), zero_division=0) for c in grid]
        cuts[t] = grid[int(np.argmax(f))]
    return cuts


bs = 64
half = torch.full((T,), 0.5)
for epoch in range(10):
    model.train()
    perm = torch.randperm(len(x_train))
    running, steps = 0.0, 0
    for i in range(0, len(x_train), bs):
        idx = perm[i:i + bs]
        loss = criterion(model(prep(x_train[idx])), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        steps += 1
    p_val = predict(x_val)
    vl = nn.functional.binary_cross_entropy(p_val, y_val).item()
    print(f"epoch {epoch} train bce {running / steps:.4f} val bce {vl:.4f} val macro-F1@0.5 {macro_f1(y_val, p_val, half):.3f}")
p_test = predict(x_test)
cuts = tune_cuts(y_val, p_val)
print(f"tuned cuts: val macro-F1 {macro_f1(y_val, p_val, cuts):.3f} test macro-F1 {macro_f1(y_test, p_test, cuts):.4f}")
