"""A graph network by index arithmetic: edge lists, scatter, masks, the whole graph at each step."""

import argparse

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--hidden_channels", type=int, default=16)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=120)
args = parser.parse_args()
torch.manual_seed(12)


class Data:
    """Nodes, edges and masks of one graph."""

    def __init__(self, nodes=300, classes=4, features=48):
        generator = torch.Generator().manual_seed(2)
        self.y = torch.randint(0, classes, (nodes,), generator=generator)
        same = self.y[:, None] == self.y[None, :]
        chosen = torch.rand(nodes, nodes, generator=generator) < torch.where(same, 0.03, 0.005)
        self.edge_index = (chosen | chosen.T).nonzero().t().contiguous()
        self.x = (torch.rand(nodes, features, generator=generator) < 0.06).float()
        self.x[torch.arange(nodes), self.y * 8 + torch.randint(0, 8, (nodes,))] = 1.0
        order = torch.randperm(nodes, generator=generator)
        self.train_mask, self.val_mask, self.test_mask = torch.zeros(3, nodes, dtype=torch.bool)
        self.train_mask[order[:80]] = True
        self.val_mask[order[80:180]] = True
        self.test_mask[order[180:]] = True


class GCNConv(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = torch.nn.Linear(in_channels, out_channels, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels))

    def forward(self, x, edge_index):
        loops = torch.arange(x.size(0)).repeat(2, 1)
        row, col = torch.cat([edge_index, loops], dim=1)
        degree = torch.zeros(x.size(0)).scatter_add_(0, col, torch.ones(col.size(0)))
        norm = degree[row].rsqrt() * degree[col].rsqrt()
        x = self.lin(x)
        out = torch.zeros_like(x).index_add_(0, col, norm[:, None] * x[row])
        return out + self.bias


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden_channels)
        self.conv2 = GCNConv(hidden_channels, out_channels)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


data = Data()
model = GCN(48, args.hidden_channels, 4)
optimizer = torch.optim.Adam(
    [
        {"params": model.conv1.parameters(), "weight_decay": 5e-4},
        {"params": model.conv2.parameters(), "weight_decay": 0},
    ],
    lr=args.lr,
)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index).argmax(dim=-1)
    accs = []
    for mask in [data.train_mask, data.val_mask, data.test_mask]:
        accs.append(int((pred[mask] == data.y[mask]).sum()) / int(mask.sum()))
    return accs


best_val_acc = test_acc = 0
for epoch in range(1, args.epochs + 1):
    loss = train()
    train_acc, val_acc, tmp_test_acc = test()
    if val_acc > best_val_acc:
        best_val_acc = val_acc
        test_acc = tmp_test_acc
    print(f"Epoch: {epoch:03d}, Loss: {loss}, Train: {train_acc:.4f}, Test: {test_acc:.4f}")
