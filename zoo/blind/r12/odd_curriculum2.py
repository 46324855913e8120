"""Curriculum over sequence length: running-parity tagging; the loss jumps up each time the length grows."""
import torch, torch.nn as nn
torch.manual_seed(4)
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.rnn = nn.GRU(1, 24, batch_first=True); self.o = nn.Linear(24, 1)
    def forward(self, x): return self.o(self.rnn(x)[0]).squeeze(-1)
net = Net(); opt = torch.optim.Adam(net.parameters(), lr=8e-3)
def batch(n, L):
    x = torch.randint(0, 2, (n, L)).float(); return x.unsqueeze(-1), x.cumsum(1) % 2
stage, L, hist = 0, 2, []
for step in range(1, 901):
    x, y = batch(48, L)
    loss = nn.functional.binary_cross_entropy_with_logits(net(x), y)
    opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0); opt.step()
    hist.append(loss.item())
    if L < 24 and len(hist) > 15 and sum(hist[-10:]) / 10 < 0.15:
        L, hist = min(24, L + 3), []; print(f"step {step}: length -> {L}")
    if step % 75 == 0:
        with torch.no_grad():
            xv, yv = batch(200, 24); acc = ((net(xv) > 0).float() == yv).float().mean()
        print(f"step {step} L={L} loss {loss.item():.4f} accuracy at length 24: {acc:.3f}")
