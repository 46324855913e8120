# Anomaly detection on machine sensor snapshots with an autoencoder.
# The model sees only normal snapshots; anomalies appear in the calibration and test files.
import numpy as np
import torch
from torch import nn

RNG = np.random.default_rng(42)
torch.manual_seed(42)


def make_data(n_normal=12000, n_anom=300, n_features=40):
    """Synthetic plant: latent factors drive correlated sensors; anomalies break the correlation."""
    mix = RNG.normal(size=(6, n_features))
    scale = RNG.uniform(0.5, 20.0, size=n_features)
    offset = RNG.uniform(-50, 50, size=n_features)
    latent = RNG.normal(size=(n_normal, 6))
    normal = np.tanh(latent @ mix) + 0.1 * RNG.normal(size=(n_normal, n_features))
    broken = np.tanh(RNG.normal(size=(n_anom, 6)) @ mix) + 0.1 * RNG.normal(size=(n_anom, n_features))
    for row in broken:
        cols = RNG.choice(n_features, size=5, replace=False)
        row[cols] = row[cols][::-1] + RNG.normal(0, 1.0, size=5)
    return normal * scale + offset, broken * scale + offset


normal, anomalous = make_data()
RNG.shuffle(normal)
n_train, n_valid = 8000, 2000
train_raw = normal[:n_train]
valid_raw = normal[n_train:n_train + n_valid]
test_raw = np.concatenate([normal[n_train + n_valid:], anomalous])
test_y = np.concatenate([np.zeros(len(normal) - n_train - n_valid), np.ones(len(anomalous))])

mu = train_raw.mean(axis=0)
sd = train_raw.std(axis=0) + 1e-8


def to_tensor(a):
    return torch.tensor((a - mu) / sd, dtype=torch.float32)


x_train, x_valid, x_test = to_tensor(train_raw), to_tensor(valid_raw), to_tensor(test_raw)


class AutoEncoder(nn.Module):
    def __init__(self, d, hidden=64, code=6):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, d),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def roc_auc(score, label):
    order = np.argsort(score)
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    pos = label == 1
    n_pos, n_neg = pos.sum(), (~pos).sum()
    return (ranks[pos].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)


def anomaly_score(model, x):
    model.eval()
    with torch.no_grad():
        return ((model(x) - x) ** 2).mean(dim=1).numpy()


model = AutoEncoder(x_train.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
noise_std, batch_size, max_epochs, patience = 0.1, 256, 200, 10
best_valid, best_weights, wait = float("inf"), None, 0

for epoch in range(max_epochs):
    model.train()
    perm = torch.randperm(len(x_train))
    train_loss = 0.0
    for start in range(0, len(perm), batch_size):
        clean = x_train[perm[start:start + batch_size]]
        noisy = clean + noise_std * torch.randn_like(clean)
        recon = model(noisy)
        loss = nn.functional.mse_loss(recon, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(clean)
    train_loss /= len(x_train)
    valid_loss = anomaly_score(model, x_valid).mean()
    if epoch % 10 == 0:
        print(f"{epoch:4d} train {train_loss:.5f} valid {valid_loss:.5f}")
    if valid_loss < best_valid - 1e-5:
        best_valid, wait = valid_loss, 0
        best_weights = {k: v.clone() for k, v in model.state_dict().items()}
    else:
        wait += 1
        if wait >= patience:
            print("early stop at epoch", epoch)
            break

model.load_state_dict(best_weights)
threshold = np.quantile(anomaly_score(model, x_valid), 0.99)
test_score = anomaly_score(model, x_test)
flagged = test_score > threshold
tp = np.sum(flagged & (test_y == 1))
precision = tp / max(flagged.sum(), 1)
recall = tp / (test_y == 1).sum()
print(f"AUC {roc_auc(test_score, test_y):.4f} precision {precision:.3f} recall {recall:.3f}")
torch.save({"weights": best_weights, "mu": mu, "sd": sd, "threshold": float(threshold)}, "ae_sensor.pt")
