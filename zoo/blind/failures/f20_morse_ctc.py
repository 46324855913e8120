"""Toy speech recognition: frames -> symbols with CTC."""
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

SYMBOLS, FRAME = 6, 8


class Utterances(Dataset):
    def __init__(self, n=480, seed=2):
        g = torch.Generator().manual_seed(seed)
        proto = torch.randn(SYMBOLS + 1, FRAME, generator=g)
        self.items = []
        for i in range(n):
            m = int(torch.randint(2, 6, (1,), generator=g))
            text = torch.randint(1, SYMBOLS + 1, (m,), generator=g)
            frames = []
            for s in text:
                frames += [proto[s]] * int(torch.randint(2, 5, (1,), generator=g)) + [proto[0]]
            audio = torch.stack(frames) + 0.3 * torch.randn(len(frames), FRAME, generator=g)
            if i == 290:
                audio = audio[:2]
                text = torch.tensor([2, 2, 5, 1])
            self.items.append((audio, text))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    audio, text = zip(*batch)
    alen = torch.tensor([len(a) for a in audio])
    tlen = torch.tensor([len(t) for t in text])
    return nn.utils.rnn.pad_sequence(audio), torch.cat(text), alen, tlen


class Recognizer(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(FRAME, hidden, bidirectional=True)
        self.out = nn.Linear(2 * hidden, SYMBOLS + 1)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.out(h).log_softmax(-1)


torch.manual_seed(5)
data = DataLoader(Utterances(), batch_size=6, collate_fn=collate)
model = Recognizer()
ctc = nn.CTCLoss(blank=0)
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(2):
    for i, (audio, text, alen, tlen) in enumerate(data):
        loss = ctc(model(audio), text, alen, tlen)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        opt.step()
        if i % 8 == 0:
            print(f"epoch {epoch} batch {i:2d} ctc {loss.item():.4f}")
