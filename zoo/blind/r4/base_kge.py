import random
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
random.seed(7)

# little map: places on a grid, relations are "k steps in some direction"
SIDE = 13
offsets = [(0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (2, 0), (0, 2), (-1, 1)]
ids = {(i, j): i * SIDE + j for i in range(SIDE) for j in range(SIDE)}
shuffled = list(range(SIDE * SIDE))
random.shuffle(shuffled)
triples = []
for (i, j), e in ids.items():
    for r, (di, dj) in enumerate(offsets):
        if (i + di, j + dj) in ids:
            triples.append((shuffled[e], r, shuffled[ids[(i + di, j + dj)]]))
random.shuffle(triples)
triples = torch.tensor(triples)
n_test = 150
test, train = triples[:n_test], triples[n_test:]
n_ent, n_rel = SIDE * SIDE, len(offsets)
GAMMA, N_NEG = 4.0, 24


class TransE(nn.Module):
    def __init__(self, n_ent, n_rel, dim=24):
        super().__init__()
        self.ent = nn.Embedding(n_ent, dim)
        self.rel = nn.Embedding(n_rel, dim)
        nn.init.uniform_(self.ent.weight, -0.25, 0.25)
        nn.init.uniform_(self.rel.weight, -0.25, 0.25)

    def forward(self, h, r, t):
        return GAMMA - (self.ent(h) + self.rel(r) - self.ent(t)).abs().sum(-1)


def corrupt(batch):
    neg = batch.repeat_interleave(N_NEG, dim=0)
    rnd = torch.randint(0, n_ent, (len(neg),))
    head = torch.rand(len(neg)) < 0.5
    neg[head, 0] = rnd[head]
    neg[~head, 2] = rnd[~head]
    return neg


def evaluate(model, triples):
    model.eval()
    with torch.no_grad():
        all_t = torch.arange(n_ent)
        h, r, t = triples.t()
        score = model(h[:, None], r[:, None], all_t[None, :])
        order = score.argsort(dim=1, descending=True)
        rank = (order == t[:, None]).float().argmax(dim=1) + 1
    model.train()
    return (1.0 / rank).mean().item(), (rank <= 5).float().mean().item()


model = TransE(n_ent, n_rel)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

print(f"{n_ent} entities, {n_rel} relations, {len(train)} train / {len(test)} test triples")
for epoch in range(1, 51):
    perm = torch.randperm(len(train))
    total = 0.0
    for idx in perm.split(128):
        pos = train[idx]
        neg = corrupt(pos)
        s_pos = model(*pos.t())
        s_neg = model(*neg.t()).view(len(pos), N_NEG)
        hardness = torch.softmax(s_neg.detach(), dim=1)
        loss = -F.logsigmoid(s_pos).mean() - (hardness * F.logsigmoid(-s_neg)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(pos)
    if epoch % 10 == 0:
        mrr, h5 = evaluate(model, test)
        print(f"epoch {epoch:3d} loss {total / len(train):.4f} test MRR {mrr:.3f} hits@5 {h5:.3f}")
