"""Online learning on a drifting stream: data are in time order, never shuffled, each sample is seen once."""
import torch
import torch.nn as nn

torch.manual_seed(10)
torch.set_num_threads(1)

STEPS, BATCH, DIM = 1200, 8, 6
w0, w1 = torch.randn(DIM), torch.randn(DIM)


def stream():
    """The relation turns slowly from w0 to w1; the time stamp is sorted by nature."""
    for t in range(STEPS):
        mix = t / STEPS
        w = (1 - mix) * w0 + mix * w1
        x = torch.randn(BATCH, DIM)
        yield t, x, (torch.tanh(x @ w) + 0.1 * torch.randn(BATCH))[:, None]


net = nn.Sequential(nn.Linear(DIM, 32), nn.Tanh(), nn.Linear(32, 1))
frozen_at_start = None
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

# prequential evaluation: predict first, then learn from the same batch
pre_err, window = [], []
naive = []
for t, x, y in stream():
    with torch.no_grad():
        pred = net(x)
        pre_err.append((pred - y).pow(2).mean().item())
        naive.append(y.pow(2).mean().item())
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    if t == 300:
        frozen_at_start = {k: v.clone() for k, v in net.state_dict().items()}
    if (t + 1) % 120 == 0:
        print(f"step {t + 1} prequential mse {sum(pre_err[-120:]) / 120:.4f} naive {sum(naive[-120:]) / 120:.4f}")

x_now = torch.randn(1000, DIM)
y_now = torch.tanh(x_now @ w1)[:, None]
with torch.no_grad():
    now = (net(x_now) - y_now).pow(2).mean().item()
    net.load_state_dict(frozen_at_start)
    old = (net(x_now) - y_now).pow(2).mean().item()
print(f"on the newest relation: adapted model {now:.4f}, model kept from step 300 {old:.4f}")
print(f"last prequential mse {sum(pre_err[-200:]) / 200:.4f} (noise 0.0100)")
