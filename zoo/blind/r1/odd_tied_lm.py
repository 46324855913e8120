import torch, torch.nn as nn

torch.manual_seed(11)
words = "red green blue white black grey pink gold".split()
rules = {0: [1, 2], 1: [3, 4], 2: [3, 5], 3: [6], 4: [7, 0], 5: [0], 6: [1, 7], 7: [2]}
seq = [0]
g = torch.Generator().manual_seed(1)
for _ in range(6000):
    nxt = rules[seq[-1]]
    seq.append(nxt[int(torch.randint(0, len(nxt), (1,), generator=g))])
seq = torch.tensor(seq)


class TiedLM(nn.Module):
    def __init__(self, v, d=32):
        super().__init__()
        self.enc = nn.Embedding(v, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.dec = nn.Linear(d, v)
        self.dec.weight = self.enc.weight      # Press & Wolf
        nn.init.normal_(self.enc.weight, std=0.2)

    def forward(self, x):
        return self.dec(self.rnn(self.enc(x))[0])


m = TiedLM(len(words))
opt = torch.optim.AdamW(m.parameters(), lr=5e-3)
for i in range(250):
    s = torch.randint(0, len(seq) - 17, (24,))
    b = torch.stack([seq[k:k + 17] for k in s])
    loss = nn.functional.cross_entropy(m(b[:, :-1]).reshape(-1, 8), b[:, 1:].reshape(-1))
    opt.zero_grad(); loss.backward(); opt.step()
    if i % 25 == 0:
        print(i + 1, "loss", round(loss.item(), 4), "(source entropy is about 0.4)")
