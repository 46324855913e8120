"""Top-1 mixture of experts shared by two classification heads (topic and priority of a ticket)."""
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    n_feat: int = 20
    n_domains: int = 4
    n_experts: int = 4
    hidden: int = 16
    n_topic: int = 5
    n_priority: int = 5
    balance: float = 0.05
    lr: float = 4e-3
    epochs: int = 14
    seed: int = 2


def make_tickets(cfg, n, rules, gen):
    dom = torch.randint(0, cfg.n_domains, (n,), generator=gen)
    x = torch.randn(n, cfg.n_feat, generator=gen)
    x[:, :cfg.n_domains] = 0.5 * x[:, :cfg.n_domains] + 2.0 * F.one_hot(dom, cfg.n_domains)
    body = x[:, cfg.n_domains:]
    topic = torch.einsum("nf,nfc->nc", body, rules[0][dom]).argmax(1)
    prio = torch.einsum("nf,nfc->nc", body, rules[1][dom]).argmax(1)
    return x, topic, prio


class MoE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.router = nn.Linear(cfg.n_feat, cfg.n_experts)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(cfg.n_feat, cfg.hidden), nn.Tanh(), nn.Linear(cfg.hidden, cfg.hidden)) for _ in range(cfg.n_experts)])
        self.topic_head = nn.Linear(cfg.hidden, cfg.n_topic)
        self.priority_head = nn.Linear(cfg.hidden, cfg.n_priority)

    def forward(self, x):
        gate = torch.softmax(self.router(x), dim=-1)
        top_p, top_i = gate.max(dim=-1)
        h = torch.zeros(len(x), self.cfg.hidden)
        for e, expert in enumerate(self.experts):
            rows = top_i == e
            h[rows] = top_p[rows].unsqueeze(1) * expert(x[rows])
        load = F.one_hot(top_i, self.cfg.n_experts).float().mean(0)
        aux = self.cfg.n_experts * (load * gate.mean(0)).sum()
        return self.topic_head(h), self.priority_head(h), aux, load


def train():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    rules = [torch.randn(cfg.n_domains, cfg.n_feat - cfg.n_domains, c, generator=gen) for c in (cfg.n_topic, cfg.n_priority)]
    x, topic, prio = make_tickets(cfg, 4000, rules, gen)
    m = torch.rand(len(x), generator=gen) < 0.5
    prio[m] = -1
    xv, topic_v, prio_v = make_tickets(cfg, 1000, rules, gen)

    model = MoE(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        s_topic = s_prio = 0.0
        batches = torch.randperm(len(x), generator=gen).split(128)
        for b in batches:
            out_topic, out_prio, aux, _ = model(x[b])
            loss_topic = F.cross_entropy(out_topic, topic[b])
            loss_prio = F.cross_entropy(out_prio, prio[b], ignore_index=-1)
            loss = loss_topic + loss_prio + cfg.balance * aux
            opt.zero_grad()
            loss.backward()
            opt.step()
            s_topic += loss_topic.item() / len(batches)
            s_prio += loss_prio.item() / len(batches)
        model.eval()
        with torch.no_grad():
            a, b_, _, load = model(xv)
        acc_t = (a.argmax(1) == topic_v).float().mean().item()
        acc_p = (b_.argmax(1) == prio_v).float().mean().item()
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1:2d} topic loss {s_topic:.3f} priority loss {s_prio:.3f} | val topic {acc_t:.3f} priority {acc_p:.3f} "
                  f"| load {[round(v, 2) for v in load.tolist()]}")


train()
