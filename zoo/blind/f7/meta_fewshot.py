"""First-order meta-learning for few-shot two-class problems with a margin loss and a fixed-length inner move."""
import torch
import torch.nn as nn
from torch.func import functional_call


class Embed(nn.Module):
    def __init__(self, d=8, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class TaskSampler:
    """Tasks share a direction; each task has its own shift around it."""

    def __init__(self, d=8, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.w = torch.randn(d, generator=self.g)
        self.d = d

    def __call__(self, shots):
        w = self.w + 0.4 * torch.randn(self.d, generator=self.g)
        w = w / w.norm()
        x = torch.randn(2 * shots, self.d, generator=self.g)
        y = torch.sign(x @ w)
        x = x + 0.6 * y.unsqueeze(1) * w
        return (x[:shots], y[:shots]), (x[shots:], y[shots:])


def margin_loss(score, y):
    return torch.relu(1 - y * score).mean()


def adapt(model, params, support, length):
    x, y = support
    loss = margin_loss(functional_call(model, params, (x,)), y)
    grads = torch.autograd.grad(loss, list(params.values()), create_graph=False)
    size = torch.sqrt(sum((g * g).sum() for g in grads))
    return {k: p - length * g / size for (k, p), g in zip(params.items(), grads)}


def main(steps=400, tasks=4, shots=10, length=0.05):
    torch.manual_seed(0)
    sampler, model = TaskSampler(seed=5), Embed()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    avg = 1.0
    for step in range(steps):
        meta = 0.0
        for _ in range(tasks):
            support, query = sampler(shots)
            fast = adapt(model, dict(model.named_parameters()), support, length)
            meta = meta + margin_loss(functional_call(model, fast, (query[0],)), query[1]) / tasks
        opt.zero_grad()
        meta.backward()
        opt.step()
        avg = 0.95 * avg + 0.05 * meta.item()
        if step % 20 == 0:
            print(f"meta step {step:4d} query loss {avg:.4f}")


if __name__ == "__main__":
    main()
