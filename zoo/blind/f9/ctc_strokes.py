import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.set_num_threads(1)
torch.manual_seed(30)

LETTERS = 6


def make_strokes(count=1200):
    strokes, words = [], []
    shape = torch.randn(LETTERS + 1, 8)
    for _ in range(count):
        word = torch.randint(1, LETTERS + 1, (int(torch.randint(3, 7, (1,))),))
        frames = int(torch.randint(32, 49, (1,)))
        slot = (torch.arange(frames) * len(word) // frames)
        strokes.append(shape[word[slot]] + 0.3 * torch.randn(frames, 8))
        words.append(word)
    return strokes, words


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv1d(8, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv1d(32, 32, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.rnn = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, LETTERS + 1)

    def forward(self, x):
        h = self.down(x.transpose(1, 2)).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.out(h).log_softmax(-1)


strokes, words = make_strokes()
model = Recogniser()
criterion = nn.CTCLoss(blank=0)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
step = 0
for epoch in range(4):
    order = torch.randperm(len(strokes)).tolist()
    for start in range(0, len(order), 16):
        rows = order[start:start + 16]
        x = pad_sequence([strokes[r] for r in rows], batch_first=True)
        frames = torch.tensor([(len(strokes[r]) + 3) // 4 for r in rows])
        target = torch.cat([words[r] for r in rows])
        sizes = torch.tensor([len(words[r]) for r in rows])
        log_probs = model(x).transpose(0, 1)
        loss = criterion(log_probs, target, frames, sizes)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if step % 20 == 0:
            print("step", step, "ctc", round(loss.item(), 4))
        step += 1
