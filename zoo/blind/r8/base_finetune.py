"""Pre-train a backbone on one task, store it, fine-tune on a small two-headed task with EMA and a resume in the middle."""
import copy
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(31)
DEV = torch.device("cpu")
g = torch.Generator().manual_seed(31)
MIX = torch.randn(6, 40, generator=g)


def world(n):
    """hidden causes -> 40 sensors; cause 0-2 set the kind, 3 and 4 the load in newtons"""
    cause = torch.randn(n, 6, generator=g)
    x = torch.tanh(cause @ MIX / 2) * 3 + 0.5 * torch.randn(n, 40, generator=g) + 5.0
    return cause, x


def pretext(n):
    c, x = world(n)
    code = (c[:, :5] > 0).long()
    return x, code                                   # five signs, plenty of it


def target_task(n):
    c, x = world(n)
    kind = (c[:, 0] > 0).long() + 2 * (c[:, 1] * c[:, 2] > 0).long()
    load = 250 + 60 * c[:, 3] + 40 * c[:, 4].abs()
    return x, kind, load


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Linear(40, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.layer3 = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())

    def forward(self, x):
        return self.layer3(self.layer2(self.layer1(x)))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.kind_head = nn.Linear(64, 4)
        self.load_head = nn.Linear(64, 1)

    def forward(self, x):
        h = self.backbone(x)
        return self.kind_head(h), self.load_head(h).squeeze(-1)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.layer1.eval()                  # frozen layer keeps its statistics
        return self


# ------------------------------------------------------------ pre-training
folder = tempfile.mkdtemp()
x_pre, code = pretext(4000)
shift, scale = x_pre.mean(0), x_pre.std(0)
x_pre = (x_pre - shift) / scale
pre = nn.Sequential()
pre.backbone, pre.head = Backbone(), nn.Linear(64, 5)
opt = torch.optim.Adam(pre.parameters(), lr=3e-3)
for epoch in range(8):
    for idx in torch.randperm(len(x_pre)).split(100):
        loss = F.binary_cross_entropy_with_logits(pre.head(pre.backbone(x_pre[idx])), code[idx].float())
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"pre-training loss {loss.item():.3f}")
torch.save(pre.state_dict(), os.path.join(folder, "pretrained.pt"))

# ------------------------------------------------------------ fine-tuning
x_tr, kind_tr, load_tr = target_task(160)
x_va, kind_va, load_va = target_task(800)
load_mean, load_std = load_tr.mean(), load_tr.std()
x_tr, x_va = (x_tr - shift) / scale, (x_va - shift) / scale
y_tr = (load_tr - load_mean) / load_std

model = TwoHeads().to(DEV)
state = torch.load(os.path.join(folder, "pretrained.pt"))
state = {k: v for k, v in state.items() if k.startswith("backbone.")}
missing, unexpected = model.load_state_dict(state, strict=False)
print("new layers:", sorted(missing))
for name, w in model.named_parameters():
    if name.startswith("backbone.layer1"):
        w.requires_grad = False
ema = copy.deepcopy(model)
DECAY, EPOCHS = 0.97, 40


def make_optimizer(model):
    back = [w for n, w in model.named_parameters() if n.startswith("backbone.") and w.requires_grad]
    heads = [w for n, w in model.named_parameters() if not n.startswith("backbone.")]
    opt = torch.optim.AdamW([{"params": back, "lr": 3e-4}, {"params": heads, "lr": 6e-3}], weight_decay=0.01)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 1 - 0.9 * e / EPOCHS)
    return opt, sched


@torch.no_grad()
def update_ema(ema, model):
    for a, b in zip(ema.parameters(), model.parameters()):
        a.mul_(DECAY).add_(b, alpha=1 - DECAY)
    for a, b in zip(ema.buffers(), model.buffers()):
        a.copy_(b)


@torch.no_grad()
def report(model):
    model.eval()
    logits, load = model(x_va)
    acc = (logits.argmax(1) == kind_va).float().mean().item()
    mae = (load * load_std + load_mean - load_va).abs().mean().item()
    return acc, mae


optimizer, scheduler = make_optimizer(model)
path = os.path.join(folder, "last.pt")
for epoch in range(EPOCHS):
    if epoch == 4:                                    # the job was moved to another machine
        ckpt = torch.load(path)
        model = TwoHeads().to(DEV)
        for w in model.backbone.layer1.parameters():
            w.requires_grad = False
        model.load_state_dict(ckpt["model"])
        optimizer, scheduler = make_optimizer(model)
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x_tr)).split(32):
        logits, load = model(x_tr[idx])
        kind_loss = F.cross_entropy(logits, kind_tr[idx], label_smoothing=0.05)
        load_loss = F.mse_loss(load, y_tr[idx])
        loss = kind_loss + load_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        update_ema(ema, model)
        total += loss.item() * len(idx)
    scheduler.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, path)
    if epoch % 8 == 7:
        acc, mae = report(model)
        e_acc, e_mae = report(ema)
        print(f"epoch {epoch + 1:2d} loss {total / len(x_tr):.3f} | kind acc {acc:.3f} load MAE {mae:.1f} | EMA acc {e_acc:.3f} MAE {e_mae:.1f}")

acc, mae = report(ema)
typical = (load_va - load_mean).abs().mean().item()
print(f"final EMA kind accuracy {acc:.3f} load MAE {mae:.2f} N (guessing the mean: {typical:.2f} N)")
