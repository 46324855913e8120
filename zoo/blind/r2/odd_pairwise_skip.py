# Pairwise hinge on click logs. Queries whose clicks are all equal give no pair and are skipped.
import random
import torch
import torch.nn as nn

random.seed(2)
torch.manual_seed(2)
true_w = torch.tensor([1.5, -1.0, 0.8, 0.0, 0.0, 0.6])


def session():
    n = random.choice([1, 2, 3, 4, 6, 8])
    x = torch.randn(n, 6)
    click = (torch.rand(n) < torch.sigmoid(2.5 * (x @ true_w) - 1)).float()
    return x, click


log = [session() for _ in range(1600)]
x_eval = torch.randn(1500, 2, 6)
u_eval = x_eval @ true_w
scorer = nn.Linear(6, 1)
opt = torch.optim.SGD(scorer.parameters(), lr=0.01)
skipped = updates = 0
recent = []
for n, (x, click) in enumerate(log, 1):
    pos, neg = x[click == 1], x[click == 0]
    if len(pos) == 0 or len(neg) == 0:
        skipped += 1
        continue
    s_pos, s_neg = scorer(pos), scorer(neg)
    hinge = (1.0 - (s_pos - s_neg.t())).clamp(min=0).mean()
    recent.append(hinge.item())
    if hinge.item() == 0.0:
        continue
    opt.zero_grad()
    hinge.backward()
    opt.step()
    updates += 1
    if n % 100 < 2 and len(recent) > 40:
        with torch.no_grad():
            s = scorer(x_eval).squeeze(-1)
            acc = ((s[:, 0] > s[:, 1]) == (u_eval[:, 0] > u_eval[:, 1])).float().mean().item()
        print(f"sessions {n} updates {updates} skipped {skipped} hinge {sum(recent) / len(recent):.3f} order accuracy {acc:.3f}")
        recent = []
