import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR

# nn.Transformer on word-by-word translation, warm-up and inverse square root decay, strong label smoothing
torch.manual_seed(10)
PAD, BOS, EOS, V, D = 0, 1, 2, 15, 32
dictionary = torch.cat([torch.arange(3), torch.randperm(V - 3) + 3])


def batch(n):
    length = torch.randint(3, 7, (n,))
    src = torch.randint(3, V, (n, 6))
    src[torch.arange(6)[None] >= length[:, None]] = PAD
    tgt = torch.zeros(n, 8, dtype=torch.long)
    tgt[:, 0] = BOS
    tgt[:, 1:7] = dictionary[src]
    tgt[torch.arange(n), length + 1] = EOS
    return src, tgt


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(V, D)
        self.place = nn.Embedding(8, D)
        self.core = nn.Transformer(D, 4, 1, 1, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.bias = nn.Parameter(torch.zeros(V))

    def embed(self, t):
        return self.tok(t) + self.place(torch.arange(t.size(1)))

    def forward(self, src, tgt):
        hide = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool), 1)
        h = self.core(self.embed(src), self.embed(tgt), tgt_mask=hide, src_key_padding_mask=src == PAD, memory_key_padding_mask=src == PAD)
        return h @ self.tok.weight.T * D ** -0.5 + self.bias


net = Translator()
crit = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.3)
opt = torch.optim.Adam(net.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
warm = 40
sched = LambdaLR(opt, lambda s: 0.06 * min((s + 1) ** -0.5, (s + 1) * warm ** -1.5))
v_src, v_tgt = batch(300)
for step in range(1, 121):
    src, tgt = batch(64)
    loss = crit(net(src, tgt[:, :-1]).transpose(1, 2), tgt[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 20 == 0:
        net.eval()
        with torch.no_grad():
            hyp = torch.full((300, 1), BOS)
            for _ in range(7):
                hyp = torch.cat([hyp, net(v_src, hyp)[:, -1:].argmax(-1)], 1)
        net.train()
        real = v_tgt != PAD
        print(f"step {step} lr {sched.get_last_lr()[0]:.5f} loss {loss.item():.3f} greedy tokens {(hyp == v_tgt)[real].float().mean():.3f} "
              f"sentences {((hyp == v_tgt) | ~real).all(1).float().mean():.3f}")
