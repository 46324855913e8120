"""Sequence-to-sequence GRU (running digit sum modulo 10, references written by clerks who slip now and then)
with scheduled sampling; validation references are exact."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(3)
L, V, H, STEPS, BATCH = 10, 10, 64, 500, 64
SLIP = 0.06
BOS = V


def batch(n, noisy=True):
    x = torch.randint(0, V, (n, L))
    slip = (torch.rand(n, L) < SLIP).long() * torch.randint(1, V, (n, L)) if noisy else 0
    return x, (x + slip).cumsum(1) % V


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.src = nn.Embedding(V, 32)
        self.tgt = nn.Embedding(V + 1, 32)
        self.enc = nn.GRU(32, H // 2, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(32 + H, H)
        self.out = nn.Sequential(nn.Linear(2 * H, 128), nn.ReLU(), nn.Linear(128, V))

    def forward(self, x, y=None, teacher=0.0):
        mem, _ = self.enc(self.src(x))
        h = x.new_zeros(len(x), H, dtype=torch.float)
        prev = torch.full((len(x),), BOS)
        logits = []
        for t in range(L):
            h = self.cell(torch.cat([self.tgt(prev), mem[:, t]], 1), h)
            o = self.out(torch.cat([h, mem[:, t]], 1))
            logits.append(o)
            prev = o.argmax(1)
            if y is not None and teacher > 0:
                use = torch.rand(len(x)) < teacher
                prev = torch.where(use, y[:, t], prev)
        return torch.stack(logits, 1)


model = Seq2Seq()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 1.0 if s < 450 else 0.2)
val = batch(512, noisy=False)
run = 0.0
for step in range(1, STEPS + 1):
    teacher = 1.0 if step < 200 else max(0.0, 1 - (step - 200) / 250)
    x, y = batch(BATCH)
    logits = model(x, y, teacher)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    run += loss.item()
    if step % 50 == 0:
        with torch.no_grad():
            free = model(val[0])
            forced = model(*val, teacher=1.0)
        print(f"step {step} teacher {teacher:.2f} train loss {run / 50:.4f} | forced tok {(forced.argmax(2) == val[1]).float().mean():.3f} "
              f"| free-running tok {(free.argmax(2) == val[1]).float().mean():.3f} whole seq {(free.argmax(2) == val[1]).all(1).float().mean():.3f}")
        run = 0.0
