"""Two-tower query/document retrieval with in-batch and mined hard negatives."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
torch.set_num_threads(1)

LATENT, Q_DIM, D_DIM, EMB = 8, 24, 32, 24
EPOCHS, BATCH, TAU = 12, 128, 0.08
gen = torch.Generator().manual_seed(31)
W_q1, W_q2 = torch.randn(LATENT, 48, generator=gen), torch.randn(48, Q_DIM, generator=gen) / 7
W_d1, W_d2 = torch.randn(LATENT, 48, generator=gen), torch.randn(48, D_DIM, generator=gen) / 7


def make_pairs(n):
    """A document and one query asked about it share a latent intent."""
    z = torch.randn(n, LATENT, generator=gen)
    zq = z + 0.15 * torch.randn(n, LATENT, generator=gen)
    q = torch.sin(0.4 * zq @ W_q1) @ W_q2 + 0.05 * torch.randn(n, Q_DIM, generator=gen)
    d = torch.tanh(0.4 * z @ W_d1) @ W_d2 + 0.05 * torch.randn(n, D_DIM, generator=gen)
    return q, d


data = {"train": make_pairs(3000), "val": make_pairs(500), "test": make_pairs(500)}
q_stats = data["train"][0].mean(0), data["train"][0].std(0)
d_stats = data["train"][1].mean(0), data["train"][1].std(0)
data = {k: ((q - q_stats[0]) / q_stats[1], (d - d_stats[0]) / d_stats[1]) for k, (q, d) in data.items()}


def mine_hard_negatives(docs, k=10):
    """Indices of documents that look alike in feature space (the document itself excluded)."""
    dist = torch.cdist(docs, docs)
    dist.fill_diagonal_(float("inf"))
    return dist.topk(k, largest=False).indices


class Tower(nn.Module):
    def __init__(self, d_in):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, EMB))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.doc = Tower(Q_DIM), Tower(D_DIM)


def contrastive_loss(q, d, hard):
    """q, d, hard: (B, E). Column 0 is the row's own hard negative, then the in-batch documents."""
    in_batch = q @ d.t()
    hard_sim = (q * hard).sum(-1, keepdim=True)
    logits = torch.cat([hard_sim, in_batch], dim=1) / TAU
    labels = torch.arange(len(q)) + 1
    return F.cross_entropy(logits, labels), (logits.argmax(1) == labels).float().mean()


@torch.no_grad()
def doc_index(model, split):
    return model.doc(data[split][1])


@torch.no_grad()
def evaluate(model, split, k=10):
    model.eval()
    q = model.query(data[split][0])
    sims = q @ doc_index(model, split).t()
    gold = sims.diagonal().unsqueeze(1)
    rank = (sims > gold).sum(1) + 1
    loss = F.cross_entropy(sims / TAU, torch.arange(len(q))).item()
    return loss, (rank <= k).float().mean().item(), (1.0 / rank).mean().item()


q_train, d_train = data["train"]
hard_idx = mine_hard_negatives(d_train)
model = TwoTower()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
steps = len(q_train) // BATCH
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, total_steps=EPOCHS * steps)

loss0, r0, mrr0 = evaluate(model, "val")
print(f"before training: val loss {loss0:.4f} recall@10 {r0:.4f} mrr {mrr0:.4f}")
best, best_state = -1.0, None
for epoch in range(EPOCHS):
    model.train()
    perm = torch.randperm(len(q_train))
    total = hits = 0.0
    for i in range(steps):
        rows = perm[i * BATCH:(i + 1) * BATCH]
        pick = torch.randint(hard_idx.shape[1], (len(rows),))
        neg_rows = hard_idx[rows, pick]
        q = model.query(q_train[rows])
        d = model.doc(d_train[rows])
        hard = model.doc(d_train[neg_rows])
        loss, acc = contrastive_loss(q, d, hard)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        total += loss.item()
        hits += acc.item()
    val_loss, recall, mrr = evaluate(model, "val")
    if recall > best:
        best, best_state = recall, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch:2d} train {total / steps:.4f} in-batch acc {hits / steps:.4f} "
          f"val loss {val_loss:.4f} recall@10 {recall:.4f} mrr {mrr:.4f}")

model.load_state_dict(best_state)
test_loss, recall, mrr = evaluate(model, "test")
print(f"best val recall@10 {best:.4f}")
print(f"test loss {test_loss:.4f} recall@10 {recall:.4f} mrr {mrr:.4f} (chance recall 0.0200)")
