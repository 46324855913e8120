import torch

torch.manual_seed(20)
DEPTH, DIM, NEG, STEPS, BURN_IN = 6, 5, 10, 320, 150


def tree_edges(depth):
    edges = []
    for child in range(1, 2 ** depth - 1):
        node = child
        while node > 0:
            node = (node - 1) // 2
            edges.append((child, node))
    return torch.tensor(edges)


edges = tree_edges(DEPTH)
nodes = 2 ** DEPTH - 1
points = torch.empty(nodes, DIM).uniform_(-1e-2, 1e-2).requires_grad_(True)


def hyperbolic(u, v):
    gap = ((u - v) ** 2).sum(-1)
    room = (1 - (u ** 2).sum(-1)) * (1 - (v ** 2).sum(-1))
    return torch.acosh(1 + 2 * gap / room + 1e-5)


def batch(n=64):
    pick = edges[torch.randint(0, len(edges), (n,))]
    other = torch.randint(0, nodes, (n, NEG))
    return pick[:, 0], pick[:, 1], other


def ranking_loss(child, parent, other):
    u = points[child][:, None]
    cand = torch.cat([points[parent][:, None], points[other]], 1)
    dist = hyperbolic(u, cand)
    return torch.nn.functional.cross_entropy(-dist, torch.zeros(len(child), dtype=torch.long))


losses = []
for step in range(STEPS):
    lr = 1.0 if step < BURN_IN else 60.0
    loss = ranking_loss(*batch())
    grad, = torch.autograd.grad(loss, points)
    with torch.no_grad():
        conformal = (1 - (points ** 2).sum(1, keepdim=True)) ** 2 / 4
        points -= lr * conformal * grad
    losses.append(loss.item())
    if step % 20 == 0:
        reach = points.detach().norm(dim=1).max().item()
        print(f"step {step} loss {loss.item():.4f} reach {reach:.4f}")
print("final", losses[-1])
