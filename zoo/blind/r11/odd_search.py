# Learning to rank: a listwise loss over the documents of one query, so every step sees a single query and
# the gradient is noisy. Evaluated by NDCG@5, the absolute scores mean nothing.
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)
gain_w = torch.randn(12)


def query():
    n = int(torch.randint(8, 25, (1,)))
    q = torch.randn(4)
    docs = torch.randn(n, 12)
    rel = docs @ gain_w + 2.0 * (docs[:, :4] * q).sum(1) + 0.7 * torch.randn(n)
    # grades are relative to the query
    grade = torch.bucketize(rel, torch.quantile(rel, torch.tensor([0.5, 0.75, 0.9])))
    return torch.cat([q.expand(n, 4), docs, docs[:, :4] * q], 1), grade.float()


def ndcg(score, grade, k=5):
    disc = 1 / torch.log2(torch.arange(2, k + 2).float())
    got = ((2 ** grade[score.argsort(descending=True)[:k]] - 1) * disc).sum()
    ideal = ((2 ** grade.sort(descending=True).values[:k] - 1) * disc).sum()
    return (got / ideal).item()


train, test = [query() for _ in range(1500)], [query() for _ in range(300)]
net = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)


def mean_ndcg(data):
    with torch.no_grad():
        return sum(ndcg(net(x).squeeze(1), g) for x, g in data) / len(data)


print(f"untrained NDCG@5 {mean_ndcg(test):.3f}")
for epoch in range(5):
    total = 0.0
    for j in torch.randperm(len(train)).tolist():
        x, g = train[j]
        s = net(x).squeeze(1)
        loss = -(torch.softmax(g, 0) * torch.log_softmax(s, 0)).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}: list loss {total / len(train):.3f} test NDCG@5 {mean_ndcg(test):.3f}")
print(f"final NDCG@5 {mean_ndcg(test):.3f}")
