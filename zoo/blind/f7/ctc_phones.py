"""Tiny phone recogniser trained with CTC on synthetic filterbank features."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_PHONES, N_MELS = 12, 16


class Utterances(Dataset):
    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.proto = torch.randn(N_PHONES + 1, N_MELS, generator=g)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(3, 7, (1,), generator=g))
            phones = torch.randint(1, N_PHONES + 1, (length,), generator=g)
            rate = float(torch.empty(1).log_normal_(1.35, 0.33, generator=g))
            dur = (torch.rand(length, generator=g) * 2 + rate).round().long().clamp(min=1)
            frames = self.proto[phones].repeat_interleave(dur, 0)
            frames = frames + 0.3 * torch.randn(frames.shape, generator=g)
            self.items.append((frames, phones))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    xs, ys = zip(*batch)
    xl = torch.tensor([x.size(0) for x in xs])
    yl = torch.tensor([y.numel() for y in ys])
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.cat(ys), xl, yl


class Recogniser(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.down = nn.Conv1d(N_MELS, hidden, 3, stride=2, padding=1)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, N_PHONES + 1)

    def forward(self, x):
        h = torch.relu(self.down(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.out(h).log_softmax(-1)


def main():
    torch.manual_seed(0)
    data = Utterances(4000, seed=2)
    loader = DataLoader(data, batch_size=16, shuffle=False, collate_fn=collate)
    net = Recogniser()
    ctc = nn.CTCLoss(blank=0)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    running = 0.0
    for step, (x, y, xl, yl) in enumerate(loader):
        logp = net(x)
        out_len = (xl + 1) // 2
        loss = ctc(logp.transpose(0, 1), y, out_len, yl)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        running = 0.9 * running + 0.1 * loss.item()
        if step % 20 == 0:
            print(f"step {step} ctc {running:.3f}")


if __name__ == "__main__":
    main()
