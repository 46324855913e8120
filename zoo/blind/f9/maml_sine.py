import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(25)


def init(sizes):
    params = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        params.append((torch.randn(b, a) / a ** 0.5).requires_grad_())
        params.append(torch.zeros(b, requires_grad=True))
    return params


def forward(params, x):
    for i in range(0, len(params), 2):
        x = F.linear(x, params[i], params[i + 1])
        if i < len(params) - 2:
            x = F.relu(x)
    return x


def task():
    amplitude = torch.rand(1) * 2 + 0.5
    phase = torch.rand(1) * 3.1416
    def sample(n):
        x = torch.rand(n, 1) * 10 - 5
        return x, amplitude * torch.sin(x + phase)
    return sample


def adapt(params, x, y, lr, steps):
    fast = list(params)
    for _ in range(steps):
        loss = F.mse_loss(forward(fast, x), y)
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [p - lr * g for p, g in zip(fast, grads)]
    return fast


def main():
    params = init([1, 40, 40, 1])
    inner_lr = 0.005
    opt = torch.optim.Adam(params, lr=1e-3)
    for step in range(450):
        outer = 0.0
        for _ in range(3):
            sample = task()
            support, query = sample(10), sample(10)
            fast = adapt(params, *support, inner_lr, steps=3)
            outer = outer + F.mse_loss(forward(fast, query[0]), query[1]) / 3
        opt.zero_grad()
        outer.backward()
        opt.step()
        inner_lr *= 1.018
        if step % 20 == 0:
            print(f"step {step} inner lr {inner_lr:.4f} query loss {outer.item():.4f}")


if __name__ == "__main__":
    main()
