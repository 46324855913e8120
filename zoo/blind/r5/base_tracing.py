"""Deep knowledge tracing: predict whether the next answer is right from the events so far."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score


@dataclass
class Config:
    students: int = 512
    val_students: int = 180
    skills: int = 8
    min_len: int = 15
    max_len: int = 32
    hidden: int = 40
    emb: int = 24
    lr: float = 6e-3
    batch: int = 32
    epochs: int = 10
    clip: float = 1.0
    seed: int = 5


def simulate(cfg, n, rng):
    """each student has a strength per skill that grows with practice and fades with the time since the last event"""
    base = 1_700_000_000
    difficulty = np.linspace(-1.2, 1.2, cfg.skills)
    out = []
    for _ in range(n):
        T = int(rng.integers(cfg.min_len, cfg.max_len + 1))
        strength = rng.normal(0, 1.6, cfg.skills)
        t = base + int(rng.integers(0, 30 * 86400))
        skill, correct, when = [], [], []
        for k in range(T):
            gap = int(np.exp(rng.uniform(np.log(4), np.log(90))))
            t += gap
            s = int(rng.integers(cfg.skills))
            fade = 2.5 * (np.log(gap) - np.log(19)) / np.log(5)
            p = 1 / (1 + np.exp(-(1.3 * strength[s] - difficulty[s] - fade)))
            c = int(rng.random() < p)
            strength[s] += 0.25
            skill.append(s)
            correct.append(c)
            when.append(t)
        out.append((np.array(skill), np.array(correct), np.array(when, dtype=np.int64)))
    return out


def to_tensors(cfg, students):
    n = len(students)
    skill = torch.zeros(n, cfg.max_len, dtype=torch.long)
    correct = torch.zeros(n, cfg.max_len)
    gap = torch.zeros(n, cfg.max_len)
    mask = torch.zeros(n, cfg.max_len, dtype=torch.bool)
    for i, (s, c, w) in enumerate(students):
        T = len(s)
        skill[i, :T] = torch.from_numpy(s)
        correct[i, :T] = torch.from_numpy(c).float()
        w = w.astype(np.float64)
        g = np.diff(w, prepend=w[0])
        gap[i, :T] = torch.from_numpy(np.log1p(g)).float()
        mask[i, :T] = True
    mask[:, 0] = False
    return skill, correct, gap, mask


class Tracer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n = cfg.skills
        self.past = nn.Embedding(2 * cfg.skills + 1, cfg.emb)
        self.now = nn.Embedding(cfg.skills, cfg.emb)
        self.rnn = nn.GRU(cfg.emb, cfg.hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(cfg.hidden + cfg.emb + 1, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, skill, correct, gap):
        event = 1 + skill + self.n * correct.long()
        event = torch.cat([torch.zeros_like(event[:, :1]), event[:, :-1]], dim=1)
        h, _ = self.rnn(self.past(event))
        g = (gap - 3.0).unsqueeze(-1)
        return self.out(torch.cat([h, self.now(skill), g], dim=-1)).squeeze(-1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        rng = np.random.default_rng(cfg.seed)
        self.train_set = to_tensors(cfg, simulate(cfg, cfg.students, rng))
        self.val_set = to_tensors(cfg, simulate(cfg, cfg.val_students, rng))
        self.model = Tracer(cfg)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=1e-3)
        steps = cfg.epochs * (cfg.students // cfg.batch)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, max_lr=cfg.lr, total_steps=steps)

    def loss(self, logits, correct, mask):
        return F.binary_cross_entropy_with_logits(logits[mask], correct[mask])

    def run_epoch(self):
        self.model.train()
        order = torch.randperm(self.cfg.students)
        losses = []
        for idx in order.split(self.cfg.batch):
            skill, correct, gap, mask = [t[idx] for t in self.train_set]
            logits = self.model(skill, correct, gap)
            loss = self.loss(logits, correct, mask)
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            self.opt.step()
            self.sched.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        skill, correct, gap, mask = self.val_set
        logits = self.model(skill, correct, gap)
        loss = self.loss(logits, correct, mask).item()
        y, p = correct[mask].numpy(), torch.sigmoid(logits[mask]).numpy()
        return loss, roc_auc_score(y, p), float(((p > 0.5) == y).mean())

    def fit(self):
        for e in range(1, self.cfg.epochs + 1):
            tl = self.run_epoch()
            vl, auc, acc = self.validate()
            print(f"epoch {e:02d} train {tl:.4f} val {vl:.4f} auc {auc:.4f} acc {acc:.4f}")
        print(f"final val loss {vl:.4f} auc {auc:.4f} acc {acc:.4f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
