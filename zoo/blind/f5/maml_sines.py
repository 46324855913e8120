"""Model-agnostic meta-learning on sine regression tasks."""
import math

import torch
import torch.nn.functional as F

torch.manual_seed(52)
torch.set_num_threads(1)

HIDDEN, TASKS, SHOTS, STEPS = 40, 4, 10, 240


def init_params():
    def layer(i, o):
        return [torch.randn(o, i) / math.sqrt(i), torch.zeros(o)]
    flat = layer(1, HIDDEN) + layer(HIDDEN, HIDDEN) + layer(HIDDEN, 1)
    return [p.requires_grad_(True) for p in flat]


def forward(params, x):
    w1, b1, w2, b2, w3, b3 = params
    h = F.relu(F.linear(x, w1, b1))
    h = F.relu(F.linear(h, w2, b2))
    return F.linear(h, w3, b3)


def sample_task(max_amplitude):
    amp = 0.3 + (max_amplitude - 0.3) * torch.rand(1)
    phase = math.pi * torch.rand(1)
    x = torch.rand(2 * SHOTS, 1) * 10 - 5
    y = amp * torch.sin(x + phase)
    return x[:SHOTS], y[:SHOTS], x[SHOTS:], y[SHOTS:]


def adapt(params, x, y, n_inner, inner_lr):
    for _ in range(n_inner):
        loss = F.mse_loss(forward(params, x), y)
        grads = torch.autograd.grad(loss, params, create_graph=True)
        params = [p - inner_lr * g for p, g in zip(params, grads)]
    return params


def inner_plan(step):
    """(steps, rate): one careful adaptation step first, more once the initialisation is useful"""
    return (1, 0.03) if step < 160 else (8, 0.4)


def main():
    params = init_params()
    opt = torch.optim.Adam(params, lr=1e-3)
    smooth = None
    for step in range(STEPS):
        outer = 0.0
        n_inner, inner_lr = inner_plan(step)
        for _ in range(TASKS):
            xs, ys, xq, yq = sample_task(max_amplitude=2.0)
            fast = adapt(params, xs, ys, n_inner, inner_lr)
            outer = outer + F.mse_loss(forward(fast, xq), yq)
        outer = outer / TASKS
        opt.zero_grad()
        outer.backward()
        torch.nn.utils.clip_grad_norm_(params, 5.0)
        opt.step()
        smooth = outer.item() if smooth is None else 0.9 * smooth + 0.1 * outer.item()
        if step % 10 == 0:
            print(f"step {step} inner {n_inner} query loss {outer.item():.4f} smooth {smooth:.4f}")


if __name__ == "__main__":
    main()
