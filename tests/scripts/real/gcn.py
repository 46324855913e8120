"""A graph convolutional network on a sparse adjacency matrix, the whole graph at each step."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Adam


class GraphConv(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.kernel = nn.Parameter(torch.Tensor(input_dim, output_dim))
        nn.init.xavier_normal_(self.kernel)
        self.bias = nn.Parameter(torch.zeros(output_dim))

    def forward(self, input_tensor, adj_mat):
        support = torch.mm(input_tensor, self.kernel)
        return torch.spmm(adj_mat, support) + self.bias


class GCN(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, dropout_p):
        super().__init__()
        self.gc1 = GraphConv(input_dim, hidden_dim)
        self.gc2 = GraphConv(hidden_dim, output_dim)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input_tensor, adj_mat):
        x = F.relu(self.gc1(input_tensor, adj_mat))
        return F.log_softmax(self.gc2(self.dropout(x), adj_mat), dim=1)


def citation_graph(nodes, generator):
    labels = torch.randint(0, 4, (nodes,), generator=generator)
    same = labels[:, None] == labels[None, :]
    edges = torch.rand(nodes, nodes, generator=generator) < torch.where(same, 0.02, 0.004)
    adjacency = (edges | edges.T).float() + torch.eye(nodes)
    degree = adjacency.sum(1).pow(-0.5)
    adj_mat = (degree[:, None] * adjacency * degree[None, :]).to_sparse()
    words = torch.rand(nodes, 60, generator=generator) < 0.05
    words[torch.arange(nodes), labels * 10 + torch.randint(0, 10, (nodes,))] = True
    features = words.float()
    return (features / features.sum(1, keepdim=True)).to_sparse(), labels, adj_mat


def train_iter(
    epoch, model, optimizer, criterion, input, target, mask_train, mask_val, print_every
):
    model.train()
    optimizer.zero_grad()
    output = model(*input)
    loss = criterion(output[mask_train], target[mask_train])
    loss.backward()
    optimizer.step()
    loss_val, acc_val = test(model, criterion, input, target, mask_val)
    if epoch % print_every == 0:
        print(f"Epoch: {epoch:04d} loss_train: {loss.item()} acc_val: {acc_val:.4f}")
    print(f"loss_val: {loss_val}")


def test(model, criterion, input, target, mask):
    model.eval()
    with torch.no_grad():
        output = model(*input)
        output, target = output[mask], target[mask]
        loss = criterion(output, target)
        acc = (output.argmax(dim=1) == target).float().sum() / len(target)
    return loss.item(), acc.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Graph convolutional network")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--l2", type=float, default=5e-4)
    args = parser.parse_args()
    torch.manual_seed(42)
    features, labels, adj_mat = citation_graph(400, torch.Generator().manual_seed(1))
    idx = torch.randperm(len(labels))
    idx_train, idx_val, idx_test = idx[:120], idx[120:220], idx[220:]
    gcn = GCN(60, 16, 4, 0.5)
    optimizer = Adam(gcn.parameters(), lr=args.lr, weight_decay=args.l2)
    criterion = nn.NLLLoss()
    for epoch in range(args.epochs):
        train_iter(
            epoch + 1,
            gcn,
            optimizer,
            criterion,
            (features, adj_mat),
            labels,
            idx_train,
            idx_val,
            10,
        )
    loss_test, acc_test = test(gcn, criterion, (features, adj_mat), labels, idx_test)
    print(f"Test set results: loss {loss_test} accuracy {acc_test:.4f}")
