# one-dimensional monotone flow (sum of sigmoids), full batch, LBFGS in float64
import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(4)
x = torch.cat([torch.randn(300) * 0.5 - 2, torch.randn(200) * 0.3 + 1.5]).unsqueeze(1)
K = 6
log_a = torch.zeros(K, requires_grad=True)
b = torch.linspace(-3, 3, K).clone().requires_grad_(True)
log_w = torch.zeros(K, requires_grad=True)


def cdf(v):
    w = torch.softmax(log_w, 0)
    return (w * torch.sigmoid(log_a.exp() * (v - b))).sum(1)


def log_density(v):
    u = log_a.exp() * (v - b)
    logs = torch.log_softmax(log_w, 0) + log_a + torch.nn.functional.logsigmoid(u) + torch.nn.functional.logsigmoid(-u)
    return torch.logsumexp(logs, 1)


opt = torch.optim.LBFGS([log_a, b, log_w], lr=0.5, max_iter=8, history_size=10, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    opt.zero_grad()
    loss = -log_density(x).mean()
    loss.backward()
    return loss


for outer in range(12):
    loss = opt.step(closure)
    print(f"outer {outer} nll {loss.item():.5f} evaluations {calls}")
u = cdf(x).detach().sort().values
ks = (u - torch.linspace(0, 1, len(u))).abs().max()
print(f"KS distance of the pushed-forward data to uniform {ks:.4f}")
