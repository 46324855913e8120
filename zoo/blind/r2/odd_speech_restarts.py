import torch, torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

torch.manual_seed(17)
K, MEL, T = 6, 16, 20
first, second = torch.randn(K, MEL), torch.randn(K, MEL)
second[3:] = first[:3]
first[3:] = second[:3]          # words 3..5 are words 0..2 with the two halves exchanged


def batch(n):
    y = torch.randint(0, K, (n,))
    cut = torch.randint(7, 14, (n, 1))
    late = torch.arange(T)[None] >= cut
    x = torch.where(late[..., None], second[y][:, None], first[y][:, None]) + 1.6 * torch.randn(n, T, MEL)
    return x.transpose(1, 2).contiguous(), y


conv = nn.Sequential(nn.Conv1d(MEL, 20, 3, padding=1), nn.GroupNorm(4, 20), nn.SiLU())
gru = nn.GRU(20, 20, bidirectional=True, batch_first=True)
head = nn.Linear(40, K)
params = [*conv.parameters(), *gru.parameters(), *head.parameters()]
opt = torch.optim.SGD(params, lr=0.6, momentum=0.8)
sched = CosineAnnealingWarmRestarts(opt, T_0=50, T_mult=1, eta_min=1e-5)
xv, yv = batch(300)


def forward(x):
    return head(gru(conv(x).transpose(1, 2))[0].mean(1))


for i in range(200):
    x, y = batch(16)
    loss = nn.functional.cross_entropy(forward(x), y, label_smoothing=0.1)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 0.5)
    opt.step()
    sched.step()
    if i % 20 == 19:
        with torch.no_grad():
            acc = (forward(xv).argmax(1) == yv).float().mean()
        print(f"iter {i + 1} lr {sched.get_last_lr()[0]:.5f} loss {loss.item():.3f} valid {acc:.3f}")
