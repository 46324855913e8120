"""Masked-token pretraining on a synthetic grammar: 15 % of the tokens are targets, the others are ignored."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(17)
V, L, MASK = 24, 24, 23
g = torch.Generator().manual_seed(17)
usual = torch.randperm(20, generator=g)
rare = torch.randperm(20, generator=g)


def corpus(n):
    # every token has a usual and a rare successor; a few tokens are typos
    x = torch.randint(0, 20, (n, L), generator=g)
    for t in range(1, L):
        x[:, t] = torch.where(torch.rand(n, generator=g) < 0.8, usual[x[:, t - 1]], rare[x[:, t - 1]])
    typo = torch.rand(n, L, generator=g) < 0.03
    return torch.where(typo, torch.randint(0, 20, (n, L), generator=g), x)


def mask_tokens(x):
    chosen = torch.rand(x.shape) < 0.15
    y = torch.where(chosen, x, torch.full_like(x, -100))
    r = torch.rand(x.shape)
    x = torch.where(chosen & (r < 0.8), torch.full_like(x, MASK), x)
    x = torch.where(chosen & (r > 0.9), torch.randint(0, 20, x.shape), x)
    return x, y


class Encoder(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.tok = nn.Embedding(V, d)
        self.rnn = nn.GRU(d, 64, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Linear(128, 64), nn.GELU(), nn.Linear(64, V))

    def forward(self, x):
        return self.head(self.rnn(self.tok(x))[0])


train, val = corpus(4000), corpus(500)
vx, vy = mask_tokens(val)
net = Encoder()
STEPS = 700
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, total_steps=STEPS)
ce = nn.CrossEntropyLoss(ignore_index=-100)
for step in range(1, STEPS + 1):
    x, y = mask_tokens(train[torch.randint(0, len(train), (64,))])
    loss = ce(net(x).flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 70 == 0:
        net.eval()
        with torch.no_grad():
            out = net(vx)
            hit = (out.argmax(-1) == vy)[vy != -100].float().mean()
            print(f"step {step:4d} train {loss.item():.3f} val masked loss {ce(out.flatten(0, 1), vy.flatten()):.3f} masked accuracy {hit:.3f} "
                  f"(targets {(vy != -100).float().mean():.3f} of tokens)")
        net.train()
