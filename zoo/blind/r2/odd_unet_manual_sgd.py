import torch
import torch.nn.functional as F

# Plain tensors, no nn.Module, no optimizer object: weights live in a dict and are moved by hand.
torch.manual_seed(29)
H = 16


def data(n):
    r = torch.arange(H).float()
    cy, cx, rad = 4 + 8 * torch.rand(n, 1, 1), 4 + 8 * torch.rand(n, 1, 1), 2 + 3 * torch.rand(n, 1, 1)
    m = ((r[None, :, None] - cy) ** 2 + (r[None, None] - cx) ** 2 < rad ** 2).float()
    sign = (torch.rand(n, 1, 1) < 0.5).float() * 2 - 1
    return (sign * m + 0.5 * torch.randn(n, H, H))[:, None], m[:, None]


def he(o, i, k):
    return (torch.randn(o, i, k, k) * (2 / (i * k * k)) ** 0.5).requires_grad_()


W = {"e1": he(8, 1, 3), "e2": he(16, 8, 3), "d1": he(8, 24, 3), "o": he(1, 8, 1)}
W["ob"] = torch.zeros(1, requires_grad=True)
V = {k: torch.zeros_like(w) for k, w in W.items()}


def unet(x):
    a = F.relu(F.conv2d(x, W["e1"], padding=1))
    b = F.relu(F.conv2d(F.max_pool2d(a, 2), W["e2"], padding=1))
    c = F.relu(F.conv2d(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1), W["d1"], padding=1))
    return F.conv2d(c, W["o"], W["ob"])


x, y = data(300)
xv, yv = data(80)
for step in range(240):
    idx = torch.randint(0, 300, (12,))
    loss = F.binary_cross_entropy_with_logits(unet(x[idx]), y[idx])
    grads = torch.autograd.grad(loss, list(W.values()))
    lr = 0.05 * min(1.0, (step + 1) / 30)
    with torch.no_grad():
        for (k, w), g in zip(W.items(), grads):
            V[k].mul_(0.9).add_(g)
            w.sub_(lr * V[k])
    if step % 40 == 39:
        with torch.no_grad():
            p = unet(xv) > 0
            iou = (p & (yv > 0)).sum() / (p | (yv > 0)).sum()
        print("step %3d loss %.4f iou %.3f" % (step + 1, loss.item(), iou.item()))
