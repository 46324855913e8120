"""Online learning: one pass over a drifting stream, batch size one, plain SGD; each example is scored before it is learned."""
import torch

torch.set_num_threads(1)
torch.manual_seed(14)
N, D = 9000, 15
angle = torch.linspace(0, 1.2, N)
a, b = torch.randn(D), torch.randn(D)
x = torch.randn(N, D)
w_true = angle.cos()[:, None] * a + angle.sin()[:, None] * b
y = torch.bernoulli(torch.sigmoid(1.5 * (x * w_true).sum(1)))
net = torch.nn.Linear(D, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.08)
loss_fn = torch.nn.BCEWithLogitsLoss()
loss_sum, right, part = 0.0, 0, 1000
frozen = None
for i in range(N):
    out = net(x[i:i + 1]).squeeze(1)
    loss = loss_fn(out, y[i:i + 1])
    right += int((out.item() > 0) == bool(y[i]))
    loss_sum += loss.item()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i == 1999:
        frozen = [p.detach().clone() for p in net.parameters()]
    if (i + 1) % part == 0:
        line = f"examples {i + 1:5d} progressive loss {loss_sum / part:.4f} accuracy {right / part:.3f}"
        if frozen is not None:
            s = slice(i + 1 - part, i + 1)
            old = (((x[s] @ frozen[0].T).squeeze(1) + frozen[1] > 0) == (y[s] > 0.5)).float().mean()
            line += f" | model frozen at 2000: {old:.3f}"
        print(line)
        loss_sum, right = 0.0, 0
