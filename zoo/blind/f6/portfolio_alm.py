import torch

torch.manual_seed(39)
ASSETS, DAYS, STEPS = 20, 250, 226
gen = torch.Generator().manual_seed(20)
factor = torch.randn(DAYS, 3, generator=gen)
load = torch.randn(3, ASSETS, generator=gen) * 0.5
returns = factor @ load + 0.6 * torch.randn(DAYS, ASSETS, generator=gen) + 0.1 * torch.rand(ASSETS, generator=gen)
sector = (torch.arange(ASSETS) % 4 == 0).float()

weights = torch.full((ASSETS,), 0.02, requires_grad=True)
multiplier = torch.zeros(2)
penalty = 0.5
opt = torch.optim.SGD([weights], lr=0.005, momentum=0.8)


def utility(w, day):
    r = returns[day] @ w
    return r.var() - 0.5 * r.mean()


def violation(w):
    return torch.stack([w.sum() - 1.0, (w * sector).sum() - 0.3])


losses = []
for step in range(STEPS):
    day = torch.randint(0, DAYS, (64,), generator=gen)
    gap = violation(weights)
    loss = utility(weights, day) + (multiplier * gap).sum() + 0.5 * penalty * (gap ** 2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        with torch.no_grad():
            multiplier = multiplier + penalty * violation(weights)
        penalty = penalty * 1.25
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} penalty {penalty:.2f} gap {gap.abs().max().item():.4f} loss {loss.item():.4f}")
print("final", losses[-1])
