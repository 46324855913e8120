import torch
import torch.nn as nn

torch.manual_seed(23)

# node depths of a lopsided taxonomy; one chain is much longer than the others
parent = [-1]
for i in range(1, 120):
    parent.append(int(torch.randint(0, i, (1,))))
for _ in range(8):
    parent.append(len(parent) - 1)
depth = [0] * len(parent)
for i, p in enumerate(parent):
    depth[i] = 0 if p < 0 else depth[p] + 1
depth = torch.tensor(depth, dtype=torch.float32)


class PoincareEmbedding(nn.Module):
    def __init__(self, n, dim=5):
        super().__init__()
        self.tangent = nn.Parameter(0.1 * torch.randn(n, dim))

    def exp0(self, v):
        n = v.norm(dim=-1, keepdim=True)
        return torch.tanh(n) * v / n

    def radius(self, p):
        return 2.0 * torch.atanh(p.norm(dim=-1))

    def forward(self, idx):
        return self.exp0(self.tangent[idx])


emb = PoincareEmbedding(len(depth))
opt = torch.optim.Adam(emb.parameters(), lr=0.04)
edges = torch.tensor([[i, p] for i, p in enumerate(parent) if p >= 0])
for step in range(400):
    pick = edges[torch.randperm(len(edges))[:96]]
    child, par = emb(pick[:, 0]), emb(pick[:, 1])
    fit = (emb.radius(child) - 1.6 * depth[pick[:, 0]]).abs().mean()
    align = (1 - torch.cosine_similarity(child, par)).mean()
    loss = fit + 0.3 * align
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"[{step}] fit={fit.item():.4f} align={align.item():.4f}")
