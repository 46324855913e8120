"""Phone recogniser trained with CTC on synthetic filter-bank features."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PHONES = 12
DIM = 16


class SpeedPerturb:
    """Resample the time axis."""

    def __init__(self, start=1.05, widen=0.0025):
        self.hi = start
        self.widen = widen

    def __call__(self, feats):
        factor = random.uniform(1.0, self.hi)
        n = max(2, int(round(feats.shape[0] / factor)))
        out = F.interpolate(feats.t().unsqueeze(0), size=n, mode="linear", align_corners=False)
        return out.squeeze(0).t()

    def tick(self):
        self.hi += self.widen


class Corpus:
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.means = torch.randn(PHONES, DIM, generator=g) * 1.5
        self.items = []
        for _ in range(n):
            length = int(torch.randint(4, 9, (1,), generator=g))
            seq = torch.randint(1, PHONES, (length,), generator=g)
            for i in range(1, length):
                if seq[i] == seq[i - 1]:
                    seq[i] = seq[i] % (PHONES - 1) + 1
            dur = torch.randint(3, 5, (length,), generator=g)
            frames = self.means[seq].repeat_interleave(dur, 0)
            frames = frames + 0.3 * torch.randn(frames.shape, generator=g)
            self.items.append((frames, seq))

    def sample(self, k):
        return random.sample(self.items, k)


class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Conv1d(DIM, 48, 3, stride=2, padding=1)
        self.rnn = nn.GRU(48, 48, batch_first=True, bidirectional=True)
        self.head = nn.Linear(96, PHONES)

    def forward(self, x, lengths):
        h = F.relu(self.front(x.transpose(1, 2))).transpose(1, 2)
        out_len = (lengths + 1) // 2
        h, _ = self.rnn(h)
        return self.head(h).log_softmax(-1), out_len


def main():
    random.seed(5)
    torch.manual_seed(5)
    corpus = Corpus(600, 5)
    net = Acoustic()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    ctc = nn.CTCLoss(blank=0)
    perturb = SpeedPerturb()
    for step in range(400):
        batch = [(perturb(f), s) for f, s in corpus.sample(8)]
        lens = torch.tensor([f.shape[0] for f, _ in batch])
        x = nn.utils.rnn.pad_sequence([f for f, _ in batch], batch_first=True)
        y = torch.cat([s for _, s in batch])
        ylen = torch.tensor([len(s) for _, s in batch])
        logp, out_len = net(x, lens)
        loss = ctc(logp.transpose(0, 1), y, out_len, ylen)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        perturb.tick()
        if step % 25 == 0:
            print(f"step {step:4d} ctc {loss.item():.3f}")


if __name__ == "__main__":
    main()
