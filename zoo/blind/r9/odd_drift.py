"""Online learning on a stream whose concept changes three times; every record is predicted first, then learned."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(8)
D, N, CHANGE = 10, 16000, (4000, 8000, 12000)
W = rng.normal(size=(4, D))

model = nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
hits, losses, static = [], [], []
frozen = None
for i in range(N):
    c = sum(i >= t for t in CHANGE)
    x = rng.normal(size=D)
    y = float(W[c] @ x + 0.4 * np.sin(3 * x[0]) > 0)
    if rng.random() < 0.05:
        y = 1 - y
    xt = torch.tensor(x, dtype=torch.float32)
    out = model(xt).squeeze()
    loss = F.binary_cross_entropy_with_logits(out, torch.tensor(y))
    hits.append(float((out.item() > 0) == (y > 0.5)))
    losses.append(loss.item())
    if frozen is not None:
        with torch.no_grad():
            static.append(float((frozen(xt).item() > 0) == (y > 0.5)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i + 1 == 3000:
        frozen = nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Linear(32, 1))
        frozen.load_state_dict(model.state_dict())
    if (i + 1) % 800 == 0:
        ref = f" model of record 3000: {np.mean(static[-800:]):.3f}" if len(static) >= 800 else ""
        print(f"records {i + 1:6d} prequential loss {np.mean(losses[-800:]):.3f} accuracy {np.mean(hits[-800:]):.3f}{ref}")
print(f"whole stream: online {np.mean(hits):.3f}, without updates after 3000: {np.mean(static):.3f}")
