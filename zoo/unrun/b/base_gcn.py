# %% [markdown]
# # Node classification on a citation graph with a plain PyTorch GCN

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
np.random.seed(3)
device = "cuda" if torch.cuda.is_available() else "cpu"

# %% Load: content has one paper per row (id, words..., subject), cites has one edge per row
raw = np.genfromtxt("cora/cora.content", dtype=str)
ids = {paper: i for i, paper in enumerate(raw[:, 0])}
words = torch.tensor(raw[:, 1:-1].astype(np.float32))
subjects = sorted(set(raw[:, -1]))
y = torch.tensor([subjects.index(s) for s in raw[:, -1]])

cites = np.genfromtxt("cora/cora.cites", dtype=str)
pairs = [(ids[a], ids[b]) for a, b in cites if a in ids and b in ids and a != b]
edges = torch.tensor(pairs).t()
n = len(ids)
print(n, "papers", edges.size(1), "citations", len(subjects), "subjects")

# %% Features: every paper's words sum to one
x = words / words.sum(dim=1, keepdim=True).clamp(min=1)


# %% Normalised adjacency D^-1/2 (A + I) D^-1/2
def normalised_adjacency(edges, n):
    both = torch.cat([edges, edges.flip(0)], dim=1)
    loops = torch.arange(n).repeat(2, 1)
    index = torch.unique(torch.cat([both, loops], dim=1), dim=1)
    deg = torch.bincount(index[0], minlength=n).float()
    inv = deg.pow(-0.5)
    value = inv[index[0]] * inv[index[1]]
    return torch.sparse_coo_tensor(index, value, (n, n)).coalesce()


adj = normalised_adjacency(edges, n).to(device)
x, y = x.to(device), y.to(device)

# %% Split: 20 papers per subject to train, then 500 to validate and 1000 to test
order = torch.randperm(n)
train_idx = torch.cat([order[y.cpu()[order] == c][:20] for c in range(len(subjects))])
rest = order[~torch.isin(order, train_idx)]
val_idx, test_idx = rest[:500], rest[500:1500]


def to_mask(idx):
    mask = torch.zeros(n, dtype=torch.bool)
    mask[idx] = True
    return mask.to(device)


train_mask, val_mask, test_mask = map(to_mask, (train_idx, val_idx, test_idx))


# %% Model
class GCNLayer(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(d_out))
        nn.init.xavier_uniform_(self.lin.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, self.lin(x)) + self.bias


class GCN(nn.Module):
    def __init__(self, d_in, hidden, classes, p=0.5):
        super().__init__()
        self.conv1 = GCNLayer(d_in, hidden)
        self.conv2 = GCNLayer(hidden, classes)
        self.p = p

    def forward(self, x, adj):
        x = F.dropout(x, self.p, training=self.training)
        h = F.relu(self.conv1(x, adj))
        h = F.dropout(h, self.p, training=self.training)
        return self.conv2(h, adj)


model = GCN(x.size(1), 16, len(subjects)).to(device)
optimizer = torch.optim.Adam([
    {"params": model.conv1.parameters(), "weight_decay": 5e-4},
    {"params": model.conv2.parameters(), "weight_decay": 0.0},
], lr=0.01)


# %% Train with early stopping on the validation loss
@torch.no_grad()
def evaluate(mask):
    model.eval()
    logits = model(x, adj)[mask]
    acc = (logits.argmax(dim=1) == y[mask]).float().mean().item()
    return F.cross_entropy(logits, y[mask]).item(), acc


best_loss, best_state, wait = float("inf"), None, 0
for epoch in range(400):
    model.train()
    optimizer.zero_grad()
    logits = model(x, adj)
    loss = F.cross_entropy(logits[train_mask], y[train_mask])
    loss.backward()
    optimizer.step()

    val_loss, val_acc = evaluate(val_mask)
    if val_loss < best_loss:
        best_loss, wait = val_loss, 0
        best_state = {k: v.clone() for k, v in model.state_dict().items()}
    else:
        wait += 1
        if wait == 50:
            break
    if epoch % 20 == 0:
        print(f"{epoch:3d} train {loss.item():.3f} val {val_loss:.3f} acc {val_acc:.3f}")

# %% Test with the best weights
model.load_state_dict(best_state)
test_loss, test_acc = evaluate(test_mask)
print(f"test loss {test_loss:.3f} acc {test_acc:.3f}")
torch.save(best_state, "gcn_cora.pt")
