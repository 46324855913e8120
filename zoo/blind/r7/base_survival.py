"""Deep Cox model: time to machine failure with right censoring."""
import copy
import torch
import torch.nn as nn

torch.manual_seed(12)
torch.set_num_threads(1)

N, EPOCHS, BATCH = 4000, 15, 256
gen = torch.Generator().manual_seed(23)
COLUMNS = ["age_days", "load_kw", "vibration", "temp_c", "pressure", "oil_ppm", "n_inspections"]


def simulate(n):
    age = 800 + 250 * torch.randn(n, generator=gen)
    load = 40 + 12 * torch.randn(n, generator=gen)
    vib = 0.02 * torch.exp(0.5 * torch.randn(n, generator=gen))
    temp = 70 + 6 * torch.randn(n, generator=gen)
    pressure = 5 + torch.randn(n, generator=gen)
    oil = 0.5 + 0.2 * torch.randn(n, generator=gen)
    z = (torch.stack([age, load, vib.log(), temp, pressure, oil], 1) - torch.tensor([800, 40, -3.9, 70, 5, 0.5])) \
        / torch.tensor([250, 12, 0.5, 6, 1, 0.2])
    risk = 0.9 * z[:, 0] + 0.8 * z[:, 2] + 0.9 * z[:, 1] * z[:, 3] + 0.8 * (z[:, 4].abs() - 0.8) - 0.5 * z[:, 5]
    fail = -torch.log(torch.rand(n, generator=gen)) * 300 * torch.exp(-risk)
    # heavy machines are sold on more often, which ends their follow-up
    censor = -torch.log(torch.rand(n, generator=gen)) * 400 * torch.exp(-0.8 * z[:, 1] + 0.5 * z[:, 5])
    time = torch.minimum(fail, censor)
    event = (fail <= censor).float()
    # one inspection every 30 days until follow-up ends
    n_insp = torch.floor(time / 30.0)
    x = torch.stack([age, load, vib, temp, pressure, oil, n_insp], 1)
    return x, time, event


x_all, time_all, event_all = simulate(N)
features = [i for i, c in enumerate(COLUMNS) if c != "n_inspections"]
x_all = x_all[:, features]
perm = torch.randperm(N, generator=gen)
tr, va, te = perm[:2600], perm[2600:3200], perm[3200:]

mean = x_all[tr].mean(0, keepdim=True)
std = x_all[tr].std(0, keepdim=True)


def prepare(x):
    return (x - mean) / std


x_tr, x_va, x_te = prepare(x_all[tr]), prepare(x_all[va]), prepare(x_all[te])


def cox_loss(risk, time, event):
    """Negative partial log-likelihood (Breslow)."""
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    log_risk_set = torch.logcumsumexp(risk, dim=0)
    return -((risk - log_risk_set) * event).sum() / event.sum().clamp(min=1)


def c_index(risk, time, event):
    """Harrell's C: pairs in which the earlier time is an observed failure."""
    earlier = time[:, None] < time[None, :]
    usable = earlier & (event[:, None] > 0)
    higher = (risk[:, None] > risk[None, :]).float() + 0.5 * (risk[:, None] == risk[None, :]).float()
    return (higher * usable).sum().item() / usable.sum().item()


class RiskNet(nn.Module):
    def __init__(self, d_in):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 48), nn.ReLU(),
                                 nn.Dropout(0.1), nn.Linear(48, 1, bias=False))

    def forward(self, x):
        return self.net(x).squeeze(-1)


@torch.no_grad()
def evaluate(model, x, time, event):
    model.eval()
    risk = model(x)
    return cox_loss(risk, time, event).item(), c_index(risk, time, event)


model = RiskNet(x_tr.shape[1])
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)
print(f"machines {N} observed failures {event_all.mean().item():.2%} median follow-up {time_all.median().item():.1f} d")

best, best_state = -1.0, None
for epoch in range(EPOCHS):
    model.train()
    order = torch.randperm(len(tr))
    total, batches = 0.0, 0
    for i in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[i:i + BATCH]
        loss = cox_loss(model(x_tr[rows]), time_all[tr][rows], event_all[tr][rows])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        opt.step()
        total += loss.item()
        batches += 1
    sched.step()
    val_loss, val_c = evaluate(model, x_va, time_all[va], event_all[va])
    if val_c > best:
        best, best_state = val_c, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch:2d} train {total / batches:.4f} val {val_loss:.4f} val c-index {val_c:.4f}")

model.load_state_dict(best_state)
test_loss, test_c = evaluate(model, x_te, time_all[te], event_all[te])
print(f"best val c-index {best:.4f}")
print(f"test loss {test_loss:.4f} c-index {test_c:.4f}")
