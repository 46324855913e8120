import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
PAD, VOCAB, D = 0, 60, 40


class TiedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, D, padding_idx=PAD)
        self.lstm = nn.LSTM(D, D, batch_first=True)
        self.out = nn.Linear(D, VOCAB)
        self.out.weight = self.emb.weight

    def forward(self, x):
        h, _ = self.lstm(self.emb(x))
        return self.out(h)


def batch(gen, bs=16, T=12):
    start = torch.randint(1, VOCAB, (bs, 1), generator=gen)
    stride = torch.randint(1, 4, (bs, 1), generator=gen)
    seq = 1 + (start + stride * torch.arange(T + 1)) % (VOCAB - 1)
    lens = torch.randint(5, T + 2, (bs, 1), generator=gen)
    return seq.masked_fill(torch.arange(T + 1) >= lens, PAD)


@torch.no_grad()
def unit_rows(weight, radius=2.0):
    weight.copy_(radius * weight / weight.norm(dim=1, keepdim=True))


def fit(n_steps=300, project_every=120):
    gen = torch.Generator().manual_seed(2)
    model = TiedLM()
    with torch.no_grad():
        model.emb.weight[1:] *= 0.3
    opt = torch.optim.Adam([p for p in model.parameters()], lr=3e-3)
    for step in range(n_steps):
        seq = batch(gen)
        logits = model(seq[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), seq[:, 1:].reshape(-1), ignore_index=PAD)
        opt.zero_grad()
        loss.backward()
        model.emb.weight.grad[PAD] = 0
        opt.step()
        if (step + 1) % project_every == 0:
            unit_rows(model.emb.weight)
        if step % 30 == 0:
            print(f"step {step} ppl {loss.exp().item():.2f}")


fit()
