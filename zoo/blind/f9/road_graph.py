import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(21)


def build_graph(nodes=240, k=4):
    where = torch.rand(nodes, 2)
    dist = torch.cdist(where, where)
    dist.fill_diagonal_(10.0)
    near = dist.topk(k, largest=False).indices
    src = near.reshape(-1)
    dst = torch.arange(nodes).repeat_interleave(k)
    return where, src, dst


class MeanConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.own = nn.Linear(d_in, d_out)
        self.other = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x, src, dst):
        total = torch.zeros_like(x).index_add(0, dst, x[src])
        degree = torch.zeros(x.shape[0]).index_add(0, dst, torch.ones(len(dst)))
        mean = total / degree.unsqueeze(1)
        return self.own(x) + self.other(mean)


class RoadNet(nn.Module):
    def __init__(self, d_in, hidden=32):
        super().__init__()
        self.first = MeanConv(d_in, hidden)
        self.second = MeanConv(hidden, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, src, dst):
        h = F.relu(self.first(x, src, dst))
        h = F.relu(self.second(h, src, dst))
        return self.head(h).squeeze(1)


where, src, dst = build_graph()
features = torch.cat([where, torch.randn(len(where), 6)], dim=1)
traffic = torch.sin(4 * where[:, 0]) + torch.cos(3 * where[:, 1]) + 0.1 * torch.randn(len(where))
train_nodes = torch.rand(len(where)) < 0.8

net = RoadNet(features.shape[1])
opt = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-4)
epochs = 500
for epoch in range(epochs):
    drop = 0.4 * epoch / epochs
    keep = torch.rand(len(src)) >= drop
    pred = net(features, src[keep], dst[keep])
    loss = F.mse_loss(pred[train_nodes], traffic[train_nodes])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 25 == 0:
        with torch.no_grad():
            held = F.mse_loss(net(features, src, dst)[~train_nodes], traffic[~train_nodes])
        print(f"epoch {epoch:3d} drop {drop:.3f} train {loss.item():.4f} held {held.item():.4f}")
