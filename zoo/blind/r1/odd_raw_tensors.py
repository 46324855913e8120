# a two-layer net without nn.Module and without torch.optim
import torch

g = torch.Generator().manual_seed(24)
X = torch.rand(1000, 2, generator=g) * 4 - 2
Y = ((X ** 2).sum(1) < 2).float()
W1 = (torch.randn(2, 32, generator=g) * 0.7).requires_grad_()
b1 = torch.zeros(32, requires_grad=True)
W2 = (torch.randn(32, generator=g) * 0.2).requires_grad_()
b2 = torch.zeros((), requires_grad=True)
params = [W1, b1, W2, b2]
vel = [torch.zeros_like(p) for p in params]
for t in range(500):
    i = torch.randint(0, 800, (50,), generator=g)
    out = torch.relu(X[i] @ W1 + b1) @ W2 + b2
    loss = torch.nn.functional.softplus(-out * (2 * Y[i] - 1)).mean()   # log(1+exp(-yx))
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, v, gr in zip(params, vel, grads):
            v.mul_(0.9).add_(gr)
            p.sub_(0.05 * v)
    if t % 100 == 0 or t == 499:
        with torch.no_grad():
            acc = (((torch.relu(X[800:] @ W1 + b1) @ W2 + b2) > 0).float() == Y[800:]).float().mean()
        print(t, "loss %.4f  held-out acc %.3f" % (loss.item(), acc.item()))
