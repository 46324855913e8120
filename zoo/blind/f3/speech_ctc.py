import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CHARS = 8


class Utterances(Dataset):
    def __init__(self, n=2400):
        g = torch.Generator().manual_seed(9)
        self.code = torch.randn(CHARS, 12, generator=g)
        self.rows = []
        for i in range(n):
            k = int(torch.randint(2, 5, (1,), generator=g))
            if i == 1143:
                k = 7
            labels = torch.randint(1, CHARS, (k,), generator=g)
            reps = 3 if i != 1143 else 1
            frames = self.code[labels].repeat_interleave(reps, 0)[:6 if i == 1143 else None]
            self.rows.append((frames + 0.3 * torch.randn(frames.shape, generator=g), labels))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    frames = nn.utils.rnn.pad_sequence([f for f, _ in rows], batch_first=True)
    return {
        "frames": frames,
        "n_frames": torch.tensor([len(f) for f, _ in rows]),
        "labels": torch.cat([l for _, l in rows]),
        "n_labels": torch.tensor([len(l) for _, l in rows]),
    }


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(12, 24, batch_first=True)
        self.out = nn.Linear(24, CHARS)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).log_softmax(-1).transpose(0, 1)


class Runner:
    def __init__(self, lr=5e-3):
        torch.manual_seed(9)
        self.model = Recogniser()
        self.ctc = nn.CTCLoss()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)

    def step(self, batch):
        logp = self.model(batch["frames"])
        loss = self.ctc(logp, batch['labels'], batch['n_frames'], batch['n_labels'])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


runner = Runner()
for i, batch in enumerate(DataLoader(Utterances(), batch_size=12, collate_fn=collate)):
    value = runner.step(batch)
    if i % 20 == 0:
        print(f"batch {i} ctc {value:.4f}")
