# Linear Cox regression fitted by L-BFGS on all patients at once: a handful of steps, each with many evaluations.
import torch

torch.manual_seed(0)
n, p = 600, 8
x = torch.randn(n, p)
beta = torch.tensor([1.0, -0.8, 0.5, 0.0, 0.0, 0.3, 0.0, -0.4])
t = torch.distributions.Exponential(torch.exp(x @ beta)).sample()
c = torch.rand(n) * 3
time, event = torch.minimum(t, c), (t <= c).float()
order = time.argsort(descending=True)
x, time, event = x[order], time[order], event[order]

w = torch.zeros(p, requires_grad=True)
opt = torch.optim.LBFGS([w], lr=1, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    h = x @ w
    nll = -((h - torch.logcumsumexp(h, 0)) * event).sum()
    nll = nll + 0.5 * w.pow(2).sum()
    nll.backward()
    return nll


def c_index():
    with torch.no_grad():
        h = x @ w
    comparable = (time[:, None] < time[None]) & (event[:, None] == 1)
    return (h[:, None] > h[None])[comparable].float().mean().item()


print(f"{int(event.sum())} events of {n}")
for it in range(6):
    value = opt.step(closure)
    print(f"iter {it} penalised neg. log partial likelihood {value.item():.3f} |grad| {w.grad.norm():.2e} c-index {c_index():.3f}")
print("true ", beta.tolist())
print("found", [round(v, 2) for v in w.tolist()])
