"""Fine-tuning: a sequence encoder pre-trained on a large source task gets a new head for a small target task."""
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
g = torch.Generator().manual_seed(77)
torch.manual_seed(77)

T, CH = 32, 4


def waves(n, k_classes, table):
    """Multichannel signals; the class sets which motif is hidden in them, at an unknown place."""
    y = torch.randint(0, k_classes, (n,), generator=g)
    x = torch.randn(n, CH, T, generator=g) * 1.2
    pos = torch.randint(0, T - 8, (n,), generator=g)
    gain = 0.8 + 0.5 * torch.rand(n, generator=g)
    for i in range(n):
        x[i, :, pos[i]:pos[i] + 8] += gain[i] * table[y[i]]
    return x, y


# motifs of both tasks share building blocks, the target task has a few of its own
blocks = torch.randn(6, CH, 8, generator=g)
mix_source = F.normalize(torch.randn(12, 6, generator=g), dim=1)
own = torch.cat([blocks, torch.randn(2, CH, 8, generator=g)])
mix_target = F.normalize(torch.randn(8, 8, generator=g), dim=1)
source_motifs = torch.einsum("kb,bct->kct", mix_source, blocks) * 1.3
target_motifs = torch.einsum("kb,bct->kct", mix_target, own) * 1.3


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(CH, 32, 8, padding=4)
        self.conv2 = nn.Conv1d(32, 48, 3, padding=1)
        self.norm = nn.LayerNorm(48)
        self.fc = nn.Linear(48, 48)

    def forward(self, x):
        h = F.gelu(self.conv1(x))
        h = F.gelu(self.conv2(h))
        h = self.norm(h.amax(dim=2))
        return F.gelu(self.fc(h))


class Tagger(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(48, k)

    def forward(self, x):
        return self.head(self.encoder(x.to(self.encoder.fc.weight.dtype)).float())


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


# ---- stage 1: source task, plenty of data
xs, ys = waves(6000, 12, source_motifs)
xv, yv = waves(500, 12, source_motifs)
source = Tagger(12)
opt = torch.optim.AdamW(source.parameters(), lr=2e-3)
for epoch in range(5):
    source.train()
    for idx in torch.randperm(len(xs)).split(64):
        loss = F.cross_entropy(source(xs[idx]), ys[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"pre-training epoch {epoch}: loss {loss.item():.3f} source accuracy {accuracy(source, xv, yv):.3f}")
buffer = io.BytesIO()
torch.save({"model": source.state_dict(), "task": "source"}, buffer)
buffer.seek(0)

# ---- stage 2: target task, little data
xt, yt = waves(480, 8, target_motifs)
xval, yval = waves(400, 8, target_motifs)
xtest, ytest = waves(1500, 8, target_motifs)

model = Tagger(12)
checkpoint = torch.load(buffer)
model.load_state_dict(checkpoint["model"])
model.head = nn.Linear(48, 8)

EPOCHS, BATCH = 25, 16
LR_BACKBONE, LR_HEAD = 2e-4, 3e-3
decay = [p for n, p in model.encoder.named_parameters() if p.ndim > 1]
plain = [p for n, p in model.encoder.named_parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([
    {"params": decay, "lr": LR_BACKBONE, "weight_decay": 0.01},
    {"params": plain, "lr": LR_BACKBONE, "weight_decay": 0.0},
    {"params": model.head.parameters(), "lr": LR_HEAD, "weight_decay": 0.0},
])
steps_per_epoch = math.ceil(len(xt) / BATCH)
total_steps = EPOCHS * steps_per_epoch
warmup = 15


def schedule(step):
    if step < warmup:
        return (step + 1) / warmup
    done = min(1.0, (step - warmup) / max(1, total_steps - warmup))
    return 0.5 * (1 + math.cos(math.pi * done))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
step = 0
for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(xt)).split(BATCH):
        loss = F.cross_entropy(model(xt[idx]), yt[idx])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        scheduler.step()
        running += loss.item() * len(idx)
        step += 1
    if epoch % 3 == 0 or epoch == EPOCHS - 1:
        print(f"epoch {epoch + 1:2d} step {step:4d}  loss {running / len(xt):.3f}  grad norm {norm:.2f}  "
              f"lr {scheduler.get_last_lr()[0]:.1e}/{scheduler.get_last_lr()[2]:.1e}  "
              f"train acc {accuracy(model, xt, yt):.3f}  val acc {accuracy(model, xval, yval):.3f}")

with torch.no_grad():
    test_loss = F.cross_entropy(model(xtest), ytest)
print(f"target test loss {test_loss:.3f} accuracy {accuracy(model, xtest, ytest):.3f}")
