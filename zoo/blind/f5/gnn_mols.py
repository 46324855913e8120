"""Graph convolution for a molecular property, dense batches of small graphs."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(36)
torch.set_num_threads(1)

N_MOLS, MAX_ATOMS, ELEMENTS, BATCH, EPOCHS = 2400, 14, 8, 32, 4


def make_molecules():
    g = torch.Generator().manual_seed(8)
    adj = torch.zeros(N_MOLS, MAX_ATOMS, MAX_ATOMS)
    kind = torch.randint(0, ELEMENTS, (N_MOLS, MAX_ATOMS), generator=g)
    size = torch.randint(6, MAX_ATOMS + 1, (N_MOLS,), generator=g)
    for m in range(N_MOLS):
        n = int(size[m])
        parents = (torch.rand(n, generator=g) * torch.arange(n)).long()
        for a in range(1, n):
            b = int(parents[a])
            adj[m, a, b] = adj[m, b, a] = 1.0
    # a salt: the counter ion is not bonded to anything
    salt = 1710
    n = int(size[salt])
    adj[salt, n - 1, :] = 0.0
    adj[salt, :, n - 1] = 0.0
    present = torch.arange(MAX_ATOMS)[None, :] < size[:, None]
    # unused slots get a self loop so that they stay out of the way
    loops = torch.diag_embed((~present).float())
    weight = torch.randn(ELEMENTS, generator=g)
    pair = (adj @ weight[kind].unsqueeze(-1)).squeeze(-1) * weight[kind]
    y = (pair * present).sum(1) / size
    return adj + loops, kind, present, (y - y.mean()) / y.std()


class GraphConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.own, self.neigh = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)

    def forward(self, h, a):
        return F.relu(self.own(h) + self.neigh(a @ h))


class MolNet(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.emb = nn.Embedding(ELEMENTS, dim)
        self.layers = nn.ModuleList(GraphConv(dim) for _ in range(3))
        self.out = nn.Linear(dim, 1)

    def forward(self, adj, kind, present):
        inv_sqrt = adj.sum(-1).pow(-0.5)
        a = inv_sqrt[:, :, None] * adj * inv_sqrt[:, None, :]
        h = self.emb(kind)
        for layer in self.layers:
            h = layer(h, a)
        p = present.unsqueeze(-1).float()
        return self.out((h * p).sum(1) / p.sum(1)).squeeze(1)


def main():
    adj, kind, present, y = make_molecules()
    net = MolNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    step = 0
    for epoch in range(EPOCHS):
        for rows in torch.randperm(N_MOLS).split(BATCH):
            loss = F.mse_loss(net(adj[rows], kind[rows], present[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 15 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
