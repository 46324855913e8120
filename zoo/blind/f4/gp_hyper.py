import math
import torch

torch.manual_seed(1)


class ExactGP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_ell = torch.nn.Parameter(torch.tensor(-1.0))
        self.log_amp = torch.nn.Parameter(torch.tensor(0.0))
        self.log_noise = torch.nn.Parameter(torch.tensor(-2.0))

    def nll(self, x, y):
        d2 = (x[:, None] - x[None, :]) ** 2
        K = torch.exp(2 * self.log_amp) * torch.exp(-0.5 * d2 / torch.exp(2 * self.log_ell))
        K = K + torch.exp(2 * self.log_noise) * torch.eye(len(x))
        alpha = torch.linalg.solve(K, y)
        return 0.5 * (y @ alpha + torch.log(torch.det(K)) + len(x) * math.log(2 * math.pi)) / len(x)


x = torch.linspace(-3, 3, 18)
y = torch.sin(1.3 * x) + 0.3 * x
gp = ExactGP()
opt = torch.optim.Adam(gp.parameters(), lr=0.03)
for i in range(300):
    loss = gp.nll(x, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 10 == 0:
        print(f"{i:3d} nll {loss.item():.4f} ell {gp.log_ell.exp().item():.3f} noise {gp.log_noise.exp().item():.5f}")
