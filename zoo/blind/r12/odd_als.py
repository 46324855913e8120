"""Factorisation with two optimizers in turns: users fixed while items move and the other way round."""
import torch

torch.manual_seed(15)
U, I, K = 300, 200, 5
R = torch.randn(U, K) @ torch.randn(K, I) / K ** 0.5 + 0.1 * torch.randn(U, I)
mask = torch.rand(U, I)
obs, held = mask < 0.4, (mask >= 0.4) & (mask < 0.5)
P = torch.nn.Parameter(0.1 * torch.randn(U, 8))
Q = torch.nn.Parameter(0.1 * torch.randn(I, 8))
op_p = torch.optim.Adam([P], lr=0.03)
op_q = torch.optim.Adam([Q], lr=0.03)


def objective():
    e = (P @ Q.T - R)[obs]
    return e.pow(2).sum() + 1.0 * (P.pow(2).sum() + Q.pow(2).sum())


for turn in range(40):
    active, frozen, op = (P, Q, op_p) if turn % 2 == 0 else (Q, P, op_q)
    frozen.requires_grad_(False)
    active.requires_grad_(True)
    for _ in range(25):
        op.zero_grad()
        loss = objective()
        loss.backward()
        op.step()
    if turn % 4 == 3:
        with torch.no_grad():
            rm = (P @ Q.T - R)[held].pow(2).mean().sqrt().item()
        print(f"turn {turn + 1} summed objective {loss.item():.1f} held-out rmse {rm:.4f} (std {R.std().item():.3f}, noise 0.1)")
