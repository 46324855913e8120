"""NaN after 187 steps: one text is empty, so attention has no position left to attend to.

holter run examples/masked_row.py
holter try replay
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
WORDS, PAD = 50, 0
texts = [torch.randint(1, WORDS, (int(torch.randint(3, 12, ())),)) for _ in range(8000)]
labels = [int((text < 10).any()) for text in texts]
texts[6011] = texts[6011][:0]  # empty after cleaning


def collate(samples):
    words, classes = zip(*samples, strict=True)
    padded = pad_sequence([*words, torch.zeros(12, dtype=torch.long)], batch_first=True)[:-1]
    return padded, torch.tensor(classes)


loader = DataLoader(list(zip(texts, labels, strict=True)), batch_size=32, collate_fn=collate)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32, padding_idx=PAD)
        self.query, self.key, self.value = (nn.Linear(32, 32) for _ in range(3))
        self.head = nn.Linear(32, 2)

    def attend(self, x, mask):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 32**0.5
        scores = scores.masked_fill(~mask[:, None, :], float("-inf"))
        return scores.softmax(dim=-1) @ self.value(x)

    def forward(self, words):
        mask = words != PAD
        x = self.embed(words)
        x = x + self.attend(x, mask)
        return self.head((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1))


model = Reader()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

for step, (words, classes) in enumerate(loader):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = criterion(model(words), classes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
