"""Material recognition from spectra with cheap crowd labels.

Four labels in ten of the training set are known to be wrong (the crowd guessed),
so training accuracy cannot go much above 0.64 unless the model memorises them.
Validation and test were labelled by experts.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
N_CLASSES, N_BANDS, WRONG = 10, 96, 0.4


def spectra(n, rng, library):
    y = rng.integers(0, N_CLASSES, n)
    other = rng.integers(0, N_CLASSES, n)
    share = rng.uniform(0.0, 0.35, (n, 1))
    x = (1 - share) * library[y] + share * library[other]
    x = x * rng.uniform(0.7, 1.3, (n, 1)) + rng.normal(0, 0.25, (n, N_BANDS))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


rng = np.random.default_rng(4)
bumps = np.exp(-0.5 * ((np.arange(N_BANDS) - rng.uniform(0, N_BANDS, (N_CLASSES, 5, 1))) / 5.0) ** 2)
library = (bumps * rng.uniform(-1, 1, (N_CLASSES, 5, 1))).sum(1)
x_train, y_true = spectra(12000, rng, library)
x_val, y_val = spectra(1500, rng, library)
x_test, y_test = spectra(3000, rng, library)

wrong = torch.tensor(rng.random(len(y_true)) < WRONG)
crowd = torch.where(wrong, torch.tensor(rng.integers(0, N_CLASSES, len(y_true))), y_true)
agreement = (crowd == y_true).float().mean().item()
print(f"crowd agrees with the truth on {agreement:.3f} of the training set")

mean, std = x_train.mean(0), x_train.std(0)
x_train, x_val, x_test = ((x - mean) / std for x in (x_train, x_val, x_test))

model = nn.Sequential(nn.Linear(N_BANDS, 128), nn.ReLU(), nn.Dropout(0.3),
                      nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, N_CLASSES))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
epochs, batch = 15, 128
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)


@torch.no_grad()
def score(x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def forward_corrected(logits):
    """Log probabilities of the crowd's label when it guesses in WRONG of the cases."""
    p = (1 - WRONG) * logits.softmax(1) + WRONG / N_CLASSES
    return p.log()


for epoch in range(1, epochs + 1):
    model.train()
    order, total, hit = torch.randperm(len(x_train)), 0.0, 0
    for rows in order.split(batch):
        logp = forward_corrected(model(x_train[rows]))
        loss = F.nll_loss(logp, crowd[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
        hit += (logp.argmax(1) == crowd[rows]).sum().item()
    scheduler.step()
    val_loss, val_acc = score(x_val, y_val)
    print(f"epoch {epoch:2d} train loss (crowd) {total / len(order):.4f} acc (crowd) {hit / len(order):.3f} "
          f"val loss (experts) {val_loss:.4f} acc {val_acc:.3f}")

_, memorised = score(x_train[wrong & (crowd != y_true)], crowd[wrong & (crowd != y_true)])
test_loss, test_acc = score(x_test, y_test)
print(f"share of the crowd's errors that the model repeats {memorised:.3f}")
print(f"test loss {test_loss:.4f} acc {test_acc:.3f}")
