"""Character model of a random second-order Markov source with tied input/output embeddings. The source's entropy is about 1.9 nats:
the loss stops there. Goal: validation loss within 0.08 nats of the true conditional entropy."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(19)
V, T = 12, 20
table = torch.softmax(1.3 * torch.randn(V, V, V), -1)


def generate(n):
    s = torch.randint(0, V, (n, 2))
    nll = []
    for _ in range(T):
        p = table[s[:, -2], s[:, -1]]
        nxt = torch.multinomial(p, 1)
        nll.append(-p.gather(1, nxt).log())
        s = torch.cat([s, nxt], 1)
    return s, torch.cat(nll, 1).mean().item()


class TiedLM(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.emb = nn.Embedding(V, d)
        nn.init.normal_(self.emb.weight, std=0.1)
        self.rnn = nn.GRU(d, 80, batch_first=True)
        self.down = nn.Linear(80, d)
        self.out = nn.Linear(d, V)
        self.out.weight = self.emb.weight

    def forward(self, s):
        return self.out(self.down(self.rnn(self.emb(s))[0]))


def loss_of(net, s):
    logits = net(s[:, :-1])[:, 1:]
    return F.cross_entropy(logits.reshape(-1, V), s[:, 2:].reshape(-1))


net = TiedLM()
opt = torch.optim.Adam(net.parameters(), lr=6e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 400)
val, floor = generate(400)
for step in range(1, 401):
    s, _ = generate(48)
    loss = loss_of(net, s)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 50 == 0:
        with torch.no_grad():
            print(f"step {step} train {loss.item():.4f} val {loss_of(net, val).item():.4f} (source entropy {floor:.4f})")
print("tied:", net.out.weight is net.emb.weight)
