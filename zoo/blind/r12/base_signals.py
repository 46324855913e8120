# Pretrain a 1-D conv backbone on plentiful generic waveforms, fine-tune on a small machine-state data set.
import copy, os, tempfile
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import TensorDataset, DataLoader

LEN = 64
t = np.arange(LEN) / LEN


def wave(kind, f, ph):
    a = 2 * np.pi * (f * t + ph)
    if kind == 0: return np.sin(a)
    if kind == 1: return np.sign(np.sin(a))
    if kind == 2: return 2 * ((f * t + ph) % 1.0) - 1
    return np.sin(a) * np.sin(2 * np.pi * (t * 1.5 + ph))


def make_source(n, seed):
    r = np.random.default_rng(seed)
    kinds, fr = r.integers(0, 4, n), r.integers(0, 3, n)
    x = np.stack([wave(k, [2.5, 4.5, 7.5][f] * r.uniform(.92, 1.08), r.random()) for k, f in zip(kinds, fr)])
    x = x * r.uniform(.7, 1.3, (n, 1)) + r.normal(0, .3, (n, LEN))
    return TensorDataset(torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(kinds * 3 + fr))


def make_target(n, seed):
    # six machine states, each a wave form in a band that the source task did not have
    r = np.random.default_rng(seed)
    spec = [(0, 3.4), (1, 3.4), (2, 3.4), (0, 6.0), (1, 6.0), (2, 6.0)]
    y = np.arange(n) % 6
    x = np.stack([wave(spec[c][0], spec[c][1] * r.uniform(.9, 1.1), r.random()) for c in y])
    x = x * r.uniform(.7, 1.3, (n, 1)) + r.normal(0, .5, (n, LEN))
    return TensorDataset(torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(y))


class Backbone(nn.Module):
    def __init__(self, c=20):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, c, 7, padding=3), nn.BatchNorm1d(c), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(c, 2 * c, 5, padding=2), nn.BatchNorm1d(2 * c), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(2 * c, 2 * c, 5, padding=2), nn.BatchNorm1d(2 * c), nn.ReLU())
        self.out_dim = 4 * c

    def forward(self, x):
        h = self.conv(x)
        return torch.cat([h.mean(-1), h.amax(-1)], 1)


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.backbone = Backbone()
        self.drop = nn.Dropout(0.4)
        self.head = nn.Linear(self.backbone.out_dim, n_classes)

    def forward(self, x):
        return self.head(self.drop(self.backbone(x)))


class Trainer:
    def __init__(self, model, optimizer, train_dl, val_dl, ckpt=None):
        self.model, self.opt = model, optimizer
        self.train_dl, self.val_dl, self.ckpt = train_dl, val_dl, ckpt
        self.best_loss, self.best_epoch = float("inf"), None

    def train_epoch(self):
        self.model.train()
        tot = n = 0
        for x, y in self.train_dl:
            self.opt.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.opt.step()
            tot += loss.item() * len(y); n += len(y)
        return tot / n

    @torch.no_grad()
    def test(self, dl):
        self.model.eval()
        tot = hit = n = 0
        for x, y in dl:
            z = self.model(x)
            tot += F.cross_entropy(z, y, reduction="sum").item()
            hit += (z.argmax(1) == y).sum().item(); n += len(y)
        return tot / n, hit / n

    def fit(self, epochs, tag):
        for ep in range(1, epochs + 1):
            tr = self.train_epoch()
            vl, va = self.test(self.val_dl)
            star = ""
            if vl < self.best_loss:
                self.best_loss, self.best_epoch, star = vl, ep, "*"
                if self.ckpt:
                    torch.save(self.model.state_dict(), self.ckpt)
            print(f"[{tag}] epoch {ep:2d}  train loss {tr:.4f}  val loss {vl:.4f}  val acc {va:.3f} {star}")


def main():
    torch.manual_seed(7)
    tmp = tempfile.mkdtemp()
    src_ckpt, tgt_ckpt = os.path.join(tmp, "pretrained.pt"), os.path.join(tmp, "finetuned.pt")

    # ---- stage 1: pretraining
    pre = Net(12)
    opt = torch.optim.AdamW(pre.parameters(), lr=3e-3, weight_decay=1e-3)
    Trainer(pre, opt, DataLoader(make_source(2400, 1), 64, shuffle=True), DataLoader(make_source(400, 2), 200), src_ckpt).fit(6, "pretrain")

    # ---- stage 2: small labelled set
    net = Net(6)
    state = torch.load(src_ckpt)
    state = {k[len("backbone."):]: v for k, v in state.items() if k.startswith("backbone.")}
    net.backbone.load_state_dict(state)
    train_dl = DataLoader(make_target(120, 3), 12, shuffle=True)
    val_dl, test_dl = DataLoader(make_target(120, 4), 120), DataLoader(make_target(900, 5), 300)
    opt = torch.optim.AdamW([
        {"params": net.backbone.parameters(), "lr": 2e-4},
        {"params": net.head.parameters(), "lr": 3e-3},
    ], weight_decay=1e-3)
    trainer = Trainer(net, opt, train_dl, val_dl, tgt_ckpt)
    trainer.fit(22, "finetune")

    net.load_state_dict(torch.load(tgt_ckpt))
    tl, ta = trainer.test(test_dl)
    print(f"best epoch {trainer.best_epoch}: test loss {tl:.4f}  test acc {ta:.3f}")


if __name__ == "__main__":
    main()
