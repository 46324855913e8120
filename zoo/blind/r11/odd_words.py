# Skip-gram with negative sampling on a toy corpus. SparseAdam for the two tables, plain SGD for the
# per-word bias: two optimizers stepped together. Embeddings start at 1/dim, output table at zero.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
V, TOPICS, DIM = 400, 10, 16
topic_of = torch.arange(V) % TOPICS

# documents stay within a topic, a fifth of the words are noise
docs = torch.randint(0, TOPICS, (6000, 1)).expand(6000, 12)
words = torch.randint(0, V // TOPICS, (6000, 12)) * TOPICS + docs
noise = torch.rand(6000, 12) < 0.2
words = torch.where(noise, torch.randint(0, V, (6000, 12)), words)

left, right = [], []
for off in (1, 2):
    left += [words[:, :-off].flatten(), words[:, off:].flatten()]
    right += [words[:, off:].flatten(), words[:, :-off].flatten()]
pairs = torch.stack([torch.cat(left), torch.cat(right)], 1)

inp = nn.Embedding(V, DIM, sparse=True)
out = nn.Embedding(V, DIM, sparse=True)
bias = nn.Parameter(torch.zeros(V))
nn.init.uniform_(inp.weight, -1 / DIM, 1 / DIM)
nn.init.zeros_(out.weight)
table_opt = torch.optim.SparseAdam([*inp.parameters(), *out.parameters()], lr=5e-3)
bias_opt = torch.optim.SGD([bias], lr=0.05)


def neighbour_purity(k=5):
    z = F.normalize(inp.weight.detach(), dim=1)
    s = z @ z.T
    s.fill_diagonal_(-1)
    nn_idx = s.topk(k, 1).indices
    return (topic_of[nn_idx] == topic_of[:, None]).float().mean().item()


print(f"pairs {len(pairs)}, purity before {neighbour_purity():.3f}")
for epoch in range(3):
    tot = n = 0
    for idx in torch.randperm(len(pairs)).split(1024):
        c, o = pairs[idx].T
        neg = torch.randint(0, V, (len(idx), 5))
        e = inp(c)
        pos = (e * out(o)).sum(1) + bias[o]
        ng = torch.einsum("bd,bkd->bk", e, out(neg)) + bias[neg]
        loss = -(F.logsigmoid(pos).sum() + F.logsigmoid(-ng).sum()) / len(idx)
        table_opt.zero_grad()
        bias_opt.zero_grad()
        loss.backward()
        table_opt.step()
        bias_opt.step()
        tot += loss.item()
        n += 1
    print(f"epoch {epoch}: loss {tot / n:.3f} (start {6 * 0.6931:.3f}) purity of 5 neighbours {neighbour_purity():.3f}")
print(f"final neighbour purity {neighbour_purity():.3f} (chance 0.1)")
