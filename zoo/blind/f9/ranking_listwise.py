import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(1)


def make_queries(queries=1600, docs=12, dim=10):
    x = torch.randn(queries, docs, dim)
    score = x[..., 0] + 0.5 * x[..., 1] - 0.3 * x[..., 2] + 0.7 * torch.randn(queries, docs)
    grade = (score > 0.35).float() + (score > 1.4).float()
    return x, grade


class Scorer(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def soft_rank(scores, tau=0.5):
    diff = scores.unsqueeze(1) - scores.unsqueeze(2)
    return 0.5 + torch.sigmoid(diff / tau).sum(-1)


def ndcg_loss(scores, grade):
    gain = 2 ** grade - 1
    dcg = (gain / torch.log2(1 + soft_rank(scores))).sum(1)
    best = torch.sort(gain, dim=1, descending=True).values
    place = torch.arange(1, grade.shape[1] + 1, dtype=torch.float32)
    ideal = (best / torch.log2(1 + place)).sum(1)
    return 1 - (dcg / ideal).mean()


def main():
    x, grade = make_queries()
    loader = DataLoader(TensorDataset(x, grade), batch_size=8, shuffle=True)
    model = Scorer()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.02)
    step = 0
    for epoch in range(3):
        for batch_x, batch_grade in loader:
            loss = ndcg_loss(model(batch_x), batch_grade)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 40 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
