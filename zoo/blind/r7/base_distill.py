"""Distil a wide teacher into a small student with few labels and a large transfer set."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
torch.set_num_threads(1)

DIM, CLASSES, BLOBS = 16, 8, 3
TEMP, ALPHA = 3.0, 0.7
EPOCHS, BATCH = 12, 128

gen = torch.Generator().manual_seed(5)
centres = torch.randn(CLASSES, BLOBS, DIM, generator=gen) * 1.15


def sample(n):
    y = torch.randint(CLASSES, (n,), generator=gen)
    k = torch.randint(BLOBS, (n,), generator=gen)
    x = centres[y, k] + torch.randn(n, DIM, generator=gen)
    return x, y


x_big, y_big = sample(5000)        # corpus the teacher was trained on
x_lab, y_lab = sample(160)         # the few labels we have for the student
x_unl, _ = sample(3000)            # unlabelled transfer set
x_val, y_val = sample(1000)
x_test, y_test = sample(2500)

mean, std = x_big.mean(0), x_big.std(0)
x_big, x_lab, x_unl, x_val, x_test = [(t - mean) / std for t in (x_big, x_lab, x_unl, x_val, x_test)]


class MLP(nn.Module):
    def __init__(self, width, depth, p=0.0):
        super().__init__()
        layers, d = [], DIM
        for _ in range(depth):
            layers += [nn.Linear(d, width), nn.ReLU(), nn.Dropout(p)]
            d = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(d, CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    nll = F.cross_entropy(logits, y).item()
    acc = (logits.argmax(1) == y).float().mean().item()
    return nll, acc


def train_teacher():
    teacher = MLP(160, 2, p=0.3)
    opt = torch.optim.AdamW(teacher.parameters(), lr=2e-3, weight_decay=1e-2)
    loader = DataLoader(TensorDataset(x_big, y_big), batch_size=256, shuffle=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 4e-3, total_steps=6 * len(loader))
    for epoch in range(6):
        teacher.train()
        for xb, yb in loader:
            loss = F.cross_entropy(teacher(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
    nll, acc = evaluate(teacher, x_val, y_val)
    print(f"teacher: val nll {nll:.4f} acc {acc:.4f}")
    return teacher


teacher = train_teacher()
teacher.eval()
for p in teacher.parameters():
    p.requires_grad_(False)

# transfer set = labelled + unlabelled rows; label -1 means "no label"
x_tr = torch.cat([x_lab, x_unl])
y_tr = torch.cat([y_lab, torch.full((len(x_unl),), -1)])

# teacher logits are computed once and kept next to the rows
cache_loader = DataLoader(TensorDataset(x_tr), batch_size=256, shuffle=False)
with torch.no_grad():
    t_logits = torch.cat([teacher(xb) for (xb,) in cache_loader])

train_loader = DataLoader(TensorDataset(x_tr, y_tr, t_logits), batch_size=BATCH, shuffle=True)


def distill_loss(s_logits, t_logits, y):
    log_p = F.log_softmax(s_logits / TEMP, dim=-1)
    log_q = F.log_softmax(t_logits / TEMP, dim=-1)
    kd = F.kl_div(log_p, log_q, reduction="batchmean", log_target=True) * TEMP ** 2
    has_label = (y >= 0).float()
    ce_rows = F.cross_entropy(s_logits, y.clamp(min=0), reduction="none")
    ce = (ce_rows * has_label).sum() / has_label.sum().clamp(min=1)
    return ALPHA * kd + (1 - ALPHA) * ce, kd, ce


student = MLP(48, 2)
opt = torch.optim.Adam(student.parameters(), lr=5e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)

best_nll, best_state = float("inf"), None
for epoch in range(EPOCHS):
    student.train()
    tot = tot_kd = tot_ce = 0.0
    for xb, yb, tb in train_loader:
        loss, kd, ce = distill_loss(student(xb), tb, yb)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 5.0)
        opt.step()
        tot += loss.item()
        tot_kd += kd.item()
        tot_ce += ce.item()
    sched.step()
    n = len(train_loader)
    val_nll, val_acc = evaluate(student, x_val, y_val)
    if val_nll < best_nll:
        best_nll, best_state = val_nll, copy.deepcopy(student.state_dict())
    print(f"epoch {epoch:2d} train {tot / n:.4f} (kd {tot_kd / n:.4f} ce {tot_ce / n:.4f}) "
          f"val nll {val_nll:.4f} acc {val_acc:.4f}")

student.load_state_dict(best_state)
test_nll, test_acc = evaluate(student, x_test, y_test)
with torch.no_grad():
    agree = (student(x_test).argmax(1) == teacher(x_test).argmax(1)).float().mean().item()
t_nll, t_acc = evaluate(teacher, x_test, y_test)
print(f"teacher test nll {t_nll:.4f} acc {t_acc:.4f}")
print(f"student test nll {test_nll:.4f} acc {test_acc:.4f} agreement {agree:.4f}")
