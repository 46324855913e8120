# Digit-string recognition from synthetic filter-bank frames with CTC.
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

torch.set_num_threads(1)
SEED = 123
torch.manual_seed(SEED)

N_MEL, N_DIGITS, BLANK = 20, 10, 0
proto_rng = np.random.default_rng(99)
PROTO = proto_rng.normal(0, 1.0, (N_DIGITS, 2, N_MEL)).astype(np.float32)   # onset and offset spectrum


def synth_utterance(rng):
    n = int(rng.integers(2, 6))
    digits = rng.integers(0, N_DIGITS, n)
    if n > 2 and rng.random() < 0.4:
        digits[1] = digits[0]
    speaker = rng.normal(0, 0.35, N_MEL)
    gain = rng.uniform(0.7, 1.3)
    frames = [np.zeros((int(rng.integers(1, 4)), N_MEL))]
    for d in digits:
        dur = int(rng.integers(5, 10))
        mix = np.linspace(0, 1, dur)[:, None]
        frames.append((1 - mix) * PROTO[d, 0] + mix * PROTO[d, 1])
        frames.append(np.zeros((int(rng.integers(2, 5)), N_MEL)))
    x = np.concatenate(frames) * gain + speaker
    x = x + rng.normal(0, 1.25, x.shape)
    return {"feats": torch.tensor(x, dtype=torch.float32) * 4.0 + 9.0, "digits": [int(d) for d in digits]}


def build(n, seed):
    rng = np.random.default_rng(seed)
    return [synth_utterance(rng) for _ in range(n)]


def encode(digits):
    return [d + 1 for d in digits]


class Collate:
    def __init__(self, mean, std, augment):
        self.mean, self.std, self.augment = mean, std, augment

    def __call__(self, items):
        lens = torch.tensor([len(it["feats"]) for it in items])
        x = torch.zeros(len(items), int(lens.max()), N_MEL)
        for i, it in enumerate(items):
            f = (it["feats"] - self.mean) / self.std
            if self.augment:
                s = int(torch.randint(0, N_MEL - 3, (1,)))
                f = f.clone()
                f[:, s:s + 3] = 0.0
            x[i, :len(f)] = f
        targets = torch.cat([torch.tensor(encode(it["digits"])) for it in items])
        return {"x": x, "x_len": lens, "y": targets,
                "y_len": torch.tensor([len(it["digits"]) for it in items]),
                "text": [it["digits"] for it in items]}


class Recogniser(nn.Module):
    def __init__(self, hid=48):
        super().__init__()
        self.conv = nn.Conv1d(N_MEL, hid, 5, stride=2, padding=2)
        self.rnn = nn.GRU(hid, hid, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(2 * hid, N_DIGITS + 1)

    def forward(self, x, x_len):
        h = F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        logits = self.fc(self.drop(h))
        return F.log_softmax(logits, dim=-1), (x_len + 1) // 2


def greedy_decode(log_probs, lens):
    out = []
    for path, n in zip(log_probs.argmax(-1), lens.tolist()):
        path = torch.unique_consecutive(path[:n])
        out.append([int(p) - 1 for p in path if p != BLANK])
    return out


def edit_distance(a, b):
    d = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        prev, d[0] = d[0], i
        for j, cb in enumerate(b, 1):
            prev, d[j] = d[j], min(d[j] + 1, d[j - 1] + 1, prev + (ca != cb))
    return d[-1]


def run_eval(net, loader):
    net.eval()
    errs = words = 0
    losses = []
    with torch.no_grad():
        for b in loader:
            lp, n = net(b["x"], b["x_len"])
            losses.append(F.ctc_loss(lp.transpose(0, 1), b["y"], n, b["y_len"], blank=BLANK).item())
            for hyp, ref in zip(greedy_decode(lp, n), b["text"]):
                errs += edit_distance(hyp, ref)
                words += len(ref)
    return float(np.mean(losses)), errs / words


train_data = build(360, seed=1)
val_data = build(150, seed=2)
test_data = build(150, seed=3)
allf = torch.cat([u["feats"] for u in train_data])
mean, std = allf.mean(0), allf.std(0)

train_loader = DataLoader(train_data, batch_size=25, shuffle=True, collate_fn=Collate(mean, std, True))
val_loader = DataLoader(val_data, batch_size=50, collate_fn=Collate(mean, std, False))
test_loader = DataLoader(test_data, batch_size=50, collate_fn=Collate(mean, std, False))

net = Recogniser()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)

for epoch in range(1, 15):
    net.train()
    tot = 0.0
    for b in train_loader:
        log_probs, out_len = net(b["x"], b["x_len"])
        loss = F.ctc_loss(log_probs.transpose(0, 1), b["y"], out_len, b["y_len"], blank=BLANK)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        tot += loss.item()
    scheduler.step()
    vloss, cer = run_eval(net, val_loader)
    print(f"[{epoch:02d}] train ctc {tot / len(train_loader):.3f}  val ctc {vloss:.3f}  val CER {100 * cer:.1f}%")

tloss, tcer = run_eval(net, test_loader)
print(f"test ctc {tloss:.3f}  test CER {100 * tcer:.1f}%")
