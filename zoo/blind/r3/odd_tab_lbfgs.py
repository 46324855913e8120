import math
import torch
from torch import nn

torch.manual_seed(8)
N = 500
age, dose = torch.rand(N) * 60 + 18, torch.rand(N) * 5
sex, group = torch.randint(0, 2, (N,)), torch.randint(0, 4, (N,))
effect = torch.tensor([0.0, 1.0, -1.5, 0.5])[group]
y = torch.sin(dose) * 2 + 0.03 * age * (sex == 1) + effect + 0.1 * torch.randn(N)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.group = nn.Embedding(4, 3)
        self.sex = nn.Embedding(2, 2)
        self.mlp = nn.Sequential(nn.Linear(7, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))

    def forward(self, i):
        z = torch.stack([(age[i] - 48) / 17, dose[i] - 2.5], dim=1)
        return self.mlp(torch.cat([z, self.group(group[i]), self.sex(sex[i])], 1))[:, 0]


model = Model()
train, test = torch.arange(400), torch.arange(400, 500)
opt = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=8, history_size=20, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    mse = ((model(train) - y[train]) ** 2).mean()
    ridge = 1e-4 * sum(p.pow(2).sum() for p in model.mlp.parameters())
    total = mse + ridge
    total.backward()
    return total


for it in range(14):
    value = opt.step(closure)
    with torch.no_grad():
        rmse = math.sqrt(((model(test) - y[test]) ** 2).mean())
    print(f"iteration {it:2d} objective {value.item():.5f} test rmse {rmse:.4f}")
