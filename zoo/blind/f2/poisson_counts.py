import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(6)
torch.manual_seed(6)

# insurance claims: frequency ~ Poisson(exposure * exp(f(x)))
n = 5000
features = rng.normal(size=(n, 5)).astype(np.float32)
features[:, 4] = rng.gamma(1.0, 1.0, size=n)
coef = np.array([0.3, -0.2, 0.1, 0.25, 0.3], dtype=np.float32)
exposure = rng.uniform(0.2, 1.0, size=n).astype(np.float32)
claims = rng.poisson(exposure * np.exp(features @ coef)).astype(np.float32)
features[4120, 4] = 9120.0

X = torch.from_numpy(features)
E = torch.from_numpy(exposure)
C = torch.from_numpy(claims)


class GLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x, e):
        return e * torch.exp(self.linear(x).squeeze(1))


model = GLM()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
bs = 25
for step in range(n // bs):
    s = slice(step * bs, (step + 1) * bs)
    rate = model(X[s], E[s])
    loss = (rate - C[s] * torch.log(rate + 1e-8)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step}: deviance-like loss {loss.item():.4f}")
print("coefficients", model.linear.weight.data.tolist())
