"""Fit response curves of photodiodes:  v = a * log(1 + b * I) + c,  one (a, b, c) per device."""
import torch

torch.manual_seed(33)
M = 24
I = torch.linspace(0.0, 8.0, 40).repeat(M, 1)
a_true = 0.5 + torch.rand(M, 1)
b_true = 0.05 + 2.5 * torch.rand(M, 1) ** 2
v = a_true * torch.log(1 + b_true * I) + 0.1 * torch.randn(M, 1) + 0.03 * torch.randn(M, 40)

a = torch.full((M, 1), 0.7, requires_grad=True)
b = torch.full((M, 1), 0.6, requires_grad=True)
c = torch.zeros(M, 1, requires_grad=True)


def misfit(cols):
    pred = a * torch.log(1 + b * I[:, cols]) + c
    return ((pred - v[:, cols]) ** 2).mean()


coarse = torch.optim.Adam([a, b, c], lr=2e-3)
for k in range(90):
    coarse.zero_grad()
    loss = misfit(torch.randperm(40)[:6])
    loss.backward()
    coarse.step()
    if k % 15 == 0:
        print("adam ", k, loss.item())

fine = torch.optim.LBFGS([a, b, c], lr=1.0, max_iter=10, history_size=8)
for k in range(40):
    cols = torch.randperm(40)[:6]

    def closure():
        fine.zero_grad()
        l = misfit(cols)
        l.backward()
        return l
    loss = fine.step(closure)
    if k % 4 == 0:
        print("lbfgs", k, loss.item())
