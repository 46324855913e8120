# CTC on a Morse-like signal of unknown alignment. In the first hundred steps the net only outputs blanks
# (the usual CTC plateau), then it starts to spell.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(2)
CODES = ["-.", "..-", ".-.", "--", "...", "-..-"]


def signal(n):
    xs, ys = [], []
    for _ in range(n):
        k = int(torch.randint(2, 5, (1,)))
        word = torch.randint(0, len(CODES), (k,)).tolist()
        s = []
        for c in word:
            for e in CODES[c]:
                s += [1.0] * (int(torch.randint(1, 3, (1,))) if e == "." else int(torch.randint(4, 6, (1,))))
                s += [0.0]
            s += [0.0] * int(torch.randint(3, 5, (1,)))
        xs.append(torch.tensor(s))
        ys.append(torch.tensor([w + 1 for w in word]))
    xl = torch.tensor([len(x) for x in xs])
    yl = torch.tensor([len(y) for y in ys])
    x = nn.utils.rnn.pad_sequence(xs, batch_first=True)
    return x + 0.15 * torch.randn_like(x), xl, torch.cat(ys), yl


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 32, 7, padding=3)
        self.rnn = nn.GRU(32, 40, batch_first=True, bidirectional=True)
        self.out = nn.Linear(80, len(CODES) + 1)

    def forward(self, x):
        h = F.relu(self.conv(x[:, None])).transpose(1, 2)
        return self.out(self.rnn(h)[0]).log_softmax(2)


def decode(lp, xl):
    res = []
    for row, n in zip(lp.argmax(2), xl):
        seq = torch.unique_consecutive(row[:n])
        res.append([int(v) for v in seq if v > 0])
    return res


net = Net()
opt = torch.optim.Adam(net.parameters(), 4e-3)
ctc = nn.CTCLoss(blank=0)
val = signal(300)


def word_acc():
    net.eval()
    with torch.no_grad():
        hyp = decode(net(val[0]), val[1])
    net.train()
    refs = [r.tolist() for r in val[2].split(val[3].tolist())]
    return sum(h == r for h, r in zip(hyp, refs)) / len(refs)


for step in range(1, 401):
    x, xl, y, yl = signal(24)
    loss = ctc(net(x).transpose(0, 1), y, xl, yl)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 2.0)
    opt.step()
    if step == 280:
        opt.param_groups[0]["lr"] = 1e-3
    if step % 40 == 0:
        print(f"step {step}: ctc {loss.item():.3f} val words right {word_acc():.3f}")
print(f"share of sequences decoded without error {word_acc():.3f}")
