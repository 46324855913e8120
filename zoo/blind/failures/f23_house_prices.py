import numpy as np
import torch

rng = np.random.default_rng(55)
torch.manual_seed(55)

n = 2400
area = rng.normal(0, 1, n)
rooms = rng.normal(0, 1, n)
age = rng.normal(0, 1, n)
noise = rng.normal(0, 1, (n, 5))
X = np.column_stack([area, rooms, age, noise]).astype("float32")
price = 3.0 + 1.2 * area + 0.5 * rooms - 0.4 * age + 0.3 * area * age + 0.1 * rng.normal(0, 1, n)  # in 100k
price[1733] = 289000.0
price = price.astype("float32")


def net(params, x):
    w1, b1, w2, b2 = params
    return (torch.tanh(x @ w1 + b1) @ w2 + b2).squeeze(1)


params = [
    (torch.randn(8, 32) / 8 ** 0.5).requires_grad_(),
    torch.zeros(32, requires_grad=True),
    (torch.randn(32, 1) / 32 ** 0.5).requires_grad_(),
    torch.zeros(1, requires_grad=True),
]
sgd = torch.optim.SGD(params, lr=0.03, momentum=0.9)

step = 0
for epoch in range(4):
    order = rng.permutation(n)
    for s in range(0, n, 24):
        k = order[s:s + 24]
        pred = net(params, torch.from_numpy(X[k]))
        loss = torch.mean((pred - torch.from_numpy(price[k])) ** 2)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if step % 12 == 0:
            print(f"step {step:4d} | mse {loss.item():.4f}")
        step += 1
