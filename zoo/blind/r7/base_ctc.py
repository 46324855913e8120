"""CTC recogniser: variable-length frame sequences to symbol strings."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(6)
torch.set_num_threads(1)

SYMBOLS, FEAT, STRIDE = 8, 12, 2
BLANK = 0                       # symbols use ids 1..SYMBOLS
EPOCHS, BATCH = 7, 32
gen = torch.Generator().manual_seed(19)
shapes = torch.randn(SYMBOLS, 2, FEAT, generator=gen)     # each symbol has an onset and a body


def render(symbols):
    frames = []
    for s in symbols.tolist():
        onset = 2
        body = int(torch.randint(2, 5, (1,), generator=gen))
        gap = int(torch.randint(1, 3, (1,), generator=gen))
        frames.append(shapes[s, 0].expand(onset, FEAT))
        frames.append(shapes[s, 1].expand(body, FEAT))
        frames.append(torch.zeros(gap, FEAT))
    x = torch.cat(frames)
    return x + 0.6 * torch.randn(x.shape, generator=gen)


class Utterances(Dataset):
    def __init__(self, n):
        self.items = []
        for _ in range(n):
            length = int(torch.randint(3, 8, (1,), generator=gen))
            symbols = torch.randint(SYMBOLS, (length,), generator=gen)
            repeat = torch.rand(length, generator=gen) < 0.2
            for i in range(1, length):
                if repeat[i]:
                    symbols[i] = symbols[i - 1]
            self.items.append((render(symbols), symbols + 1))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    xs, ys = zip(*batch)
    x_len = torch.tensor([len(x) for x in xs])
    y_len = torch.tensor([len(y) for y in ys])
    return pad_sequence(xs, batch_first=True), x_len, torch.cat(ys), y_len


class Recogniser(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(FEAT, width, 5, stride=STRIDE, padding=2), nn.ReLU(),
                                  nn.Conv1d(width, width, 3, padding=1), nn.ReLU())
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, SYMBOLS + 1)

    def forward(self, x, x_len):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)          # (B, T', W)
        logits = self.out(self.norm(h))
        out_len = (x_len - 1) // STRIDE + 1
        return logits, out_len


def ctc(logits, out_len, y, y_len):
    log_probs = F.log_softmax(logits, dim=-1).permute(1, 0, 2)   # (T, B, C)
    return F.ctc_loss(log_probs, y, out_len, y_len, blank=BLANK, zero_infinity=True)


def greedy(logits, out_len):
    texts = []
    for row, n in zip(logits.argmax(-1), out_len.tolist()):
        ids = row[:n]
        ids = torch.unique_consecutive(ids)
        ids = ids[ids != BLANK]
        texts.append(ids.tolist())
    return texts


def edit_distance(a, b):
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        cur = [i]
        for j, cb in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (ca != cb)))
        prev = cur
    return prev[-1]


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = errors = symbols = exact = count = 0
    for x, x_len, y, y_len in loader:
        logits, out_len = model(x, x_len)
        loss += ctc(logits, out_len, y, y_len).item() * len(x)
        refs = [r.tolist() for r in y.split(y_len.tolist())]
        for hyp, ref in zip(greedy(logits, out_len), refs):
            errors += edit_distance(hyp, ref)
            symbols += len(ref)
            exact += hyp == ref
            count += 1
    return loss / count, errors / symbols, exact / count


train_set, val_set, test_set = Utterances(1000), Utterances(200), Utterances(300)
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, collate_fn=collate)
val_loader = DataLoader(val_set, batch_size=64, collate_fn=collate)
test_loader = DataLoader(test_set, batch_size=64, collate_fn=collate)

model = Recogniser()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 8e-3, total_steps=EPOCHS * len(train_loader))
best, best_state = 9.9, None
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, x_len, y, y_len in train_loader:
        logits, out_len = model(x, x_len)
        loss = ctc(logits, out_len, y, y_len)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        sched.step()
        total += loss.item()
    val_loss, cer, exact = evaluate(model, val_loader)
    if cer < best:
        best, best_state = cer, {k: v.clone() for k, v in model.state_dict().items()}
    print(f"epoch {epoch} train {total / len(train_loader):.4f} val {val_loss:.4f} cer {cer:.4f} exact {exact:.4f}")

model.load_state_dict(best_state)
test_loss, cer, exact = evaluate(model, test_loader)
print(f"test loss {test_loss:.4f} cer {cer:.4f} exact match {exact:.4f}")
