"""Micro-batches of 4, weights updated every 16 micro-batches; scheduler counts updates."""
import torch, torch.nn as nn
torch.manual_seed(0)
ACC, MB = 16, 4
Xa = torch.randn(3200, 24); w = torch.randn(24, 5); Ya = (Xa @ w + 0.8 * torch.tanh(Xa[:, :5] * Xa[:, 5:10])).argmax(1)
Xt, Yt, Xv, Yv = Xa[:2560], Ya[:2560], Xa[2560:], Ya[2560:]
net = nn.Sequential(nn.Linear(24, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 5))
opt = torch.optim.AdamW(net.parameters(), lr=6e-3)
EPOCHS = 9; updates = EPOCHS * len(Xt) // (ACC * MB)
sch = torch.optim.lr_scheduler.OneCycleLR(opt, 6e-3, total_steps=updates)
for ep in range(EPOCHS):
    tot = 0.
    for k, b in enumerate(torch.randperm(len(Xt)).split(MB)):
        loss = nn.functional.cross_entropy(net(Xt[b]), Yt[b]) / ACC
        loss.backward(); tot += loss.item() * ACC
        if (k + 1) % ACC == 0:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step(); sch.step(); opt.zero_grad(set_to_none=True)
    with torch.no_grad(): acc = (net(Xv).argmax(1) == Yv).float().mean()
    print(f"epoch {ep} micro loss {tot/(k+1):.4f} val acc {acc:.4f} lr {sch.get_last_lr()[0]:.2e}")
