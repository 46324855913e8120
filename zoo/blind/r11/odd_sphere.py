# All hidden weights are projected back to unit rows after each step; with scale-free layers a learning
# rate of 15 is ordinary (the step along the sphere is what matters).
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(0)
d = load_digits()
X = torch.tensor(d.data).float()
X = (X - X[:1300].mean(0)) / (X[:1300].std(0) + 1.0)
Y = torch.tensor(d.target)

class UnitLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(F.normalize(torch.randn(o, i), dim=1))

    def forward(self, x):
        return F.normalize(x, dim=1) @ F.normalize(self.weight, dim=1).T

    @torch.no_grad()
    def project(self):
        self.weight.copy_(F.normalize(self.weight, dim=1))


l1, l2 = UnitLinear(64, 160), UnitLinear(160, 10)
TEMP = 0.06
LR = 15.0


def forward(x):
    return l2(F.relu(l1(x))) / TEMP


opt = torch.optim.SGD([l1.weight, l2.weight], lr=LR)
for epoch in range(30):
    opt.param_groups[0]["lr"] = LR * (1 - epoch / 30)
    tot = 0
    for i in torch.randperm(1300).split(65):
        loss = TEMP * F.cross_entropy(forward(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        l1.project()
        l2.project()
        tot += loss.item() / TEMP / 20
    with torch.no_grad():
        acc = (forward(X[1300:]).argmax(1) == Y[1300:]).float().mean()
    if epoch % 3 == 0:
        print(f"epoch {epoch}: ce {tot:.4f} test acc {acc:.3f}")
print(f"test accuracy {acc:.3f}")
