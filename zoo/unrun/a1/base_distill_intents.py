"""Distil a transformer intent classifier into a small BiGRU. Data: intents.jsonl with {"text", "intent", "split"}."""
import json
import math
import re
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

CFG = {
    "path": "intents.jsonl",
    "max_len": 48,
    "min_freq": 2,
    "teacher": {"d_model": 192, "heads": 6, "layers": 4, "epochs": 15, "lr": 5e-4},
    "student": {"emb": 64, "hidden": 64, "epochs": 25, "lr": 2e-3},
    "batch_size": 64,
    "temperature": 3.0,
    "alpha": 0.7,          # weight of the soft loss
    "seed": 21,
}
PAD, UNK = 0, 1
device = "cuda" if torch.cuda.is_available() else "cpu"


def tokenize(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def load_data(cfg):
    rows = [json.loads(line) for line in open(cfg["path"], encoding="utf-8")]
    train_rows = [r for r in rows if r["split"] == "train"]
    freq = Counter(t for r in train_rows for t in tokenize(r["text"]))
    words = [w for w, n in freq.most_common() if n >= cfg["min_freq"]]
    vocab = {w: i + 2 for i, w in enumerate(words)}
    intents = {name: i for i, name in enumerate(sorted({r["intent"] for r in train_rows}))}
    sets = {"train": [], "valid": []}
    for r in rows:
        ids = [vocab.get(t, UNK) for t in tokenize(r["text"])][: cfg["max_len"]] or [UNK]
        if r["split"] in sets and r["intent"] in intents:
            sets[r["split"]].append((torch.tensor(ids), intents[r["intent"]]))
    return sets, len(vocab) + 2, len(intents)


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True, padding_value=PAD), lengths, torch.tensor(labels)


class Teacher(nn.Module):
    def __init__(self, n_vocab, n_out, d_model, heads, layers, max_len):
        super().__init__()
        self.emb = nn.Embedding(n_vocab, d_model, padding_idx=PAD)
        pos = torch.arange(max_len).unsqueeze(1)
        freq = torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2) / d_model)
        table = torch.zeros(max_len, d_model)
        table[:, 0::2], table[:, 1::2] = torch.sin(pos * freq), torch.cos(pos * freq)
        self.register_buffer("pos", table)
        layer = nn.TransformerEncoderLayer(d_model, heads, 4 * d_model, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.out = nn.Linear(d_model, n_out)

    def forward(self, ids, lengths):
        pad = ids == PAD
        h = self.encoder(self.emb(ids) + self.pos[: ids.size(1)], src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(2).float()
        return self.out((h * keep).sum(dim=1) / keep.sum(dim=1))


class Student(nn.Module):
    def __init__(self, n_vocab, n_out, emb, hidden):
        super().__init__()
        self.emb = nn.Embedding(n_vocab, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(2 * hidden, n_out)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.out(self.drop(torch.cat([h[-2], h[-1]], dim=1)))


def distill_loss(s_logits, t_logits, labels, temperature, alpha):
    soft = F.kl_div(
        F.log_softmax(s_logits / temperature, dim=1),
        F.softmax(t_logits / temperature, dim=1),
        reduction="batchmean",
    ) * temperature ** 2
    return alpha * soft + (1 - alpha) * F.cross_entropy(s_logits, labels)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right, total = 0, 0
    for ids, lengths, labels in loader:
        pred = model(ids.to(device), lengths).argmax(dim=1).cpu()
        right += (pred == labels).sum().item()
        total += len(labels)
    return right / total


def train(model, loaders, epochs, lr, path, teacher=None):
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    best = 0.0
    for epoch in range(epochs):
        model.train()
        for ids, lengths, labels in loaders["train"]:
            ids, labels = ids.to(device), labels.to(device)
            logits = model(ids, lengths)
            if teacher is None:
                loss = F.cross_entropy(logits, labels)
            else:
                with torch.no_grad():
                    t_logits = teacher(ids, lengths)
                loss = distill_loss(logits, t_logits, labels, CFG["temperature"], CFG["alpha"])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        acc = accuracy(model, loaders["valid"])
        print(f"{path} epoch {epoch} valid accuracy {acc:.4f}")
        if acc > best:
            best = acc
            torch.save(model.state_dict(), path)
    model.load_state_dict(torch.load(path, map_location=device))
    return best


def main():
    torch.manual_seed(CFG["seed"])
    sets, n_vocab, n_out = load_data(CFG)
    loaders = {
        "train": DataLoader(sets["train"], CFG["batch_size"], shuffle=True, collate_fn=collate),
        "valid": DataLoader(sets["valid"], 256, collate_fn=collate),
    }
    t, s = CFG["teacher"], CFG["student"]
    teacher = Teacher(n_vocab, n_out, t["d_model"], t["heads"], t["layers"], CFG["max_len"]).to(device)
    t_best = train(teacher, loaders, t["epochs"], t["lr"], "teacher.pt")
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad_(False)
    student = Student(n_vocab, n_out, s["emb"], s["hidden"]).to(device)
    s_best = train(student, loaders, s["epochs"], s["lr"], "student.pt", teacher)
    print(f"teacher {t_best:.4f} student {s_best:.4f}")


if __name__ == "__main__":
    main()
