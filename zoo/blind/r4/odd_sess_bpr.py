"""GRU4Rec-like: session-parallel batches, hidden state kept across steps and reset where a session ends."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
N, B = 40, 32
follow = torch.randperm(N)


def new_item(prev, fresh):
    nxt = torch.where(torch.rand(len(prev)) < 0.85, follow[prev], torch.randint(0, N, (len(prev),)))
    return torch.where(fresh, torch.randint(0, N, (len(prev),)), nxt)


emb, cell, out = nn.Embedding(N, 32), nn.GRUCell(32, 32), nn.Embedding(N, 32)
params = [*emb.parameters(), *cell.parameters(), *out.parameters()]
opt = torch.optim.Adagrad(params, lr=0.1)
state = torch.zeros(B, 32)
item = torch.randint(0, N, (B,))
hits, losses = [], []
for step in range(1, 601):
    ended = torch.rand(B) < 0.1
    state = state.detach() * (~ended).float()[:, None]
    item = torch.where(ended, torch.randint(0, N, (B,)), item)
    state = cell(emb(item), state)
    target = new_item(item, torch.zeros(B, dtype=torch.bool))
    logits = state @ out(target).t()                     # the other sessions' items are the negatives
    other = target[:, None] != target[None, :]
    diff = logits.diag()[:, None] - logits
    loss = -(F.logsigmoid(diff) * other).sum() / other.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        top = (state @ out.weight.t()).topk(3, dim=1).indices
        hits.append((top == target[:, None]).any(1).float().mean().item())
    losses.append(loss.item())
    item = target
    if step % 100 == 0:
        print(f"step {step} bpr {sum(losses[-100:]) / 100:.3f} recall@3 (before the update's effect) {sum(hits[-100:]) / 100:.3f}")
