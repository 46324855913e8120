# Saxe-style deep linear net from a small initialisation: long plateau, then stage-wise learning of the modes
import torch
torch.manual_seed(0)
d = 16
U, _ = torch.linalg.qr(torch.randn(d, d)); V, _ = torch.linalg.qr(torch.randn(d, d))
S = torch.zeros(d); S[:4] = torch.tensor([4., 3., 2., 1.2])
A = U @ torch.diag(S) @ V.T
layers = torch.nn.Sequential(*[torch.nn.Linear(d, d, bias=False) for _ in range(3)])
for l in layers: torch.nn.init.normal_(l.weight, std=0.02)
opt = torch.optim.SGD(layers.parameters(), lr=0.15)
xv = torch.randn(400, d); yv = xv @ A.T
for step in range(4001):
    x = torch.randn(64, d)
    loss = (layers(x) - x @ A.T).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 250 == 0:
        with torch.no_grad():
            vl = (layers(xv) - yv).pow(2).mean() / yv.pow(2).mean()
            sv = torch.linalg.svdvals(layers[2].weight @ layers[1].weight @ layers[0].weight)[:4]
        print(f"step {step:5d} loss {loss.item():.5f} rel. val error {vl:.5f} modes {[round(v,2) for v in sv.tolist()]}")
