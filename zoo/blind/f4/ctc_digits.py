import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(21)


class Strokes(Dataset):
    """Each digit is drawn as a burst of 4 to 7 frames."""

    def __init__(self, n=2400):
        g = torch.Generator().manual_seed(3)
        self.proto = torch.randn(11, 12, generator=g)
        self.items = []
        for i in range(n):
            k = int(torch.randint(2, 6, (1,), generator=g))
            labels = torch.randint(1, 11, (k,), generator=g)
            reps = torch.randint(4, 8, (k,), generator=g)
            if i == 1530:
                labels = torch.tensor([7, 7, 7, 7, 4])
                reps = torch.tensor([3, 3, 3, 3, 3])
            frames = torch.repeat_interleave(self.proto[labels], reps, 0)
            frames = frames + 0.3 * torch.randn(frames.shape, generator=g)
            self.items.append((frames, labels))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    xs, ys = zip(*batch)
    xl = torch.tensor([len(x) for x in xs])
    yl = torch.tensor([len(y) for y in ys])
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.cat(ys), xl, yl


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(12, 32, 3, stride=2, padding=1)
        self.rnn = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 11)

    def forward(self, x, xl):
        h = torch.relu(self.down(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.out(h).log_softmax(-1).transpose(0, 1), xl // 2


loader = DataLoader(Strokes(), batch_size=24, shuffle=False, collate_fn=collate)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
ctc = nn.CTCLoss(blank=0)
for i, (x, y, xl, yl) in enumerate(loader):
    logp, ol = net(x, xl)
    loss = ctc(logp, y, ol, yl)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 10 == 0:
        print("iter", i, "ctc", loss.item())
