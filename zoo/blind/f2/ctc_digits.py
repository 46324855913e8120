import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(25)
N_SYMBOLS = 6  # 0 is blank


def utterance(g):
    n = int(torch.randint(2, 5, (1,), generator=g))
    target = torch.randint(1, N_SYMBOLS, (n,), generator=g)
    frames = []
    for s in target:
        rep = int(torch.randint(2, 5, (1,), generator=g))
        f = torch.zeros(rep, 8)
        f[:, s] = 2.0
        frames += [f, torch.zeros(1, 8)]
    x = torch.cat(frames)
    return x + 0.2 * torch.randn(x.shape, generator=g), target


def load(n=1200):
    g = torch.Generator().manual_seed(25)
    items = [utterance(g) for _ in range(n)]
    x, t = items[777]
    items[777] = (x[:3], torch.tensor([2, 4, 4, 1]))
    return items


class Recognizer(nn.Module):
    def __init__(self, h=32):
        super().__init__()
        self.rnn = nn.LSTM(8, h, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * h, N_SYMBOLS)

    def forward(self, x, lens):
        packed = pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.fc(out).log_softmax(-1)


items = load()
model = Recognizer()
ctc = nn.CTCLoss(blank=0)
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
BS = 8
for step in range(len(items) // BS):
    chunk = items[step * BS:(step + 1) * BS]
    lens = torch.tensor([len(x) for x, _ in chunk])
    tlens = torch.tensor([len(t) for _, t in chunk])
    x = pad_sequence([x for x, _ in chunk], batch_first=True)
    targets = torch.cat([t for _, t in chunk])
    logp = model(x, lens)
    loss = ctc(logp.transpose(0, 1), targets, lens, tlens)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    if step % 15 == 0:
        print(f"step {step:3d} ctc {loss.item():.4f}")
