# online fit of a threshold power law  y = a * (x - c)^b  with L-BFGS on small chunks
import torch

torch.manual_seed(15)
n_chunks = 160


class PowerLaw(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(1.0))
        self.b = torch.nn.Parameter(torch.tensor(1.3))
        self.c = torch.nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        return self.a * torch.pow(x - self.c, self.b)


x_all = 1.2 + 3.0 * torch.rand(n_chunks, 24)
y_all = 1.7 * torch.pow(x_all - 0.5, 0.8) + 0.02 * torch.randn(n_chunks, 24)
x_all[96, 5] = 0.21
y_all[96, 5] = 0.0

model = PowerLaw()
opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2, history_size=5)

for k in range(n_chunks):
    x, y = x_all[k], y_all[k]

    def closure():
        opt.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        return loss

    loss = opt.step(closure)
    if k % 10 == 0:
        print(f"chunk {k:3d} loss {loss.item():.5f} a {model.a.item():.3f} b {model.b.item():.3f} c {model.c.item():.3f}")
print("fit done")
