# Time-to-relapse model: categorical embeddings + numeric columns, Cox partial likelihood
import copy
import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)

NUM_COLS = ["age", "marker_a", "marker_b", "bmi", "dose"]
CAT_COLS = {"site": 8, "stage": 4, "therapy": 5}


def simulate_registry(n=3000, seed=4):
    rng = np.random.default_rng(seed)
    t = {
        "age": rng.normal(60, 11, n),
        "marker_a": rng.lognormal(1.0, 0.6, n),
        "marker_b": rng.normal(0, 1, n),
        "bmi": rng.normal(26, 4, n),
        "dose": rng.uniform(20, 80, n),
        "site": rng.integers(0, 8, n),
        "stage": rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]),
        "therapy": rng.integers(0, 5, n),
    }
    site_eff = np.random.default_rng(1).normal(0, 0.5, 8)
    ther_eff = np.array([0.0, -0.8, 0.5, -0.2, 0.9])
    risk = (0.03 * (t["age"] - 60) + 0.9 * np.log(t["marker_a"]) * (t["therapy"] % 2 == 0)
            + 0.8 * np.abs(t["marker_b"]) + np.array([0, 0.5, 1.0, 1.6])[t["stage"]]
            + site_eff[t["site"]] + ther_eff[t["therapy"]] - 0.015 * (t["dose"] - 50))
    event_time = rng.exponential(1, n) ** 0.8 * np.exp(-risk) * 40
    censor_time = rng.uniform(2, 60, n)
    t["time"] = np.minimum(event_time, censor_time)
    t["event"] = (event_time <= censor_time).astype(np.float32)
    t["visits"] = rng.poisson(2 + 1.5 * t["time"])
    return t


class Preprocessor:
    def fit(self, table, idx):
        self.mu = {c: table[c][idx].mean() for c in NUM_COLS}
        self.sd = {c: table[c][idx].std() for c in NUM_COLS}
        return self

    def __call__(self, table, idx):
        num = np.stack([(table[c][idx] - self.mu[c]) / self.sd[c] for c in NUM_COLS], 1)
        cat = np.stack([table[c][idx] for c in CAT_COLS], 1)
        return {
            "num": torch.tensor(num, dtype=torch.float32),
            "cat": torch.tensor(cat, dtype=torch.long),
            "time": torch.tensor(table["time"][idx], dtype=torch.float32),
            "event": torch.tensor(table["event"][idx], dtype=torch.float32),
        }


class RiskNet(nn.Module):
    def __init__(self, hidden=64, p=0.15):
        super().__init__()
        self.emb = nn.ModuleDict({c: nn.Embedding(k, 4) for c, k in CAT_COLS.items()})
        self.mlp = nn.Sequential(
            nn.Linear(len(NUM_COLS) + 4 * len(CAT_COLS), hidden), nn.ReLU(), nn.Dropout(p),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(p), nn.Linear(hidden, 1))

    def forward(self, batch):
        parts = [batch["num"]] + [self.emb[c](batch["cat"][:, j]) for j, c in enumerate(CAT_COLS)]
        return self.mlp(torch.cat(parts, 1)).squeeze(-1)


def cox_loss(risk, time, event):
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    log_cum = torch.logcumsumexp(risk, 0)
    return -((risk - log_cum) * event).sum() / event.sum().clamp(min=1)


def c_index(risk, time, event):
    ti, tj = time[:, None], time[None, :]
    usable = (ti < tj) & (event[:, None] == 1)
    conc = (risk[:, None] > risk[None, :]).float() + 0.5 * (risk[:, None] == risk[None, :]).float()
    return (conc[usable].mean()).item()


def take(data, idx):
    return {k: v[idx] for k, v in data.items()}


def main():
    torch.manual_seed(8)
    table = simulate_registry()
    perm = np.random.default_rng(0).permutation(len(table["time"]))
    tr, va, te = perm[:1500], perm[1500:2100], perm[2100:]
    prep = Preprocessor().fit(table, tr)
    train, valid, test = prep(table, tr), prep(table, va), prep(table, te)
    print(f"events: train {train['event'].mean():.2f} valid {valid['event'].mean():.2f} test {test['event'].mean():.2f}")

    net = RiskNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
    best, best_state, bad = -1.0, None, 0
    for epoch in range(1, 81):
        net.train()
        losses = []
        for idx in torch.randperm(len(train["time"])).split(100):
            b = take(train, idx)
            loss = cox_loss(net(b), b["time"], b["event"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        net.eval()
        with torch.no_grad():
            rv = net(valid)
            vloss = cox_loss(rv, valid["time"], valid["event"]).item()
            c = c_index(rv, valid["time"], valid["event"])
            c_tr = c_index(net(train), train["time"], train["event"])
        if c > best:
            best, best_state, bad = c, copy.deepcopy(net.state_dict()), 0
        else:
            bad += 1
        if epoch % 5 == 0 or epoch == 1:
            print(f"epoch {epoch:3d} loss {np.mean(losses):.4f} valid loss {vloss:.4f} C-index train {c_tr:.3f} valid {c:.3f}")
        if bad >= 25:
            print("stop at epoch", epoch)
            break
    net.load_state_dict(best_state)
    net.eval()
    with torch.no_grad():
        c = c_index(net(test), test["time"], test["event"])
    print(f"best valid C-index {best:.3f}  test C-index {c:.3f}")


if __name__ == "__main__":
    main()
