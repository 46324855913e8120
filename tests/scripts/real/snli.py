"""Classify pairs of sentences with a shared encoder; padded batches, validation every N steps."""

import argparse
import os
import random

import torch
import torch.nn as nn
import torch.optim as O

parser = argparse.ArgumentParser(description="SNLI-like example")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--log_every", type=int, default=10)
parser.add_argument("--dev_every", type=int, default=50)
parser.add_argument("--save_path", default="results")
parser.add_argument("--fault", default="")
args = parser.parse_args()

torch.manual_seed(2)
random.seed(2)
VOCAB, PAD = 30, 1


def example(rng):
    premise = [rng.randint(2, VOCAB - 1) for _ in range(rng.randint(4, 9))]
    label = rng.randint(0, 2)
    if label == 0:  # entailment: words of the premise
        hypothesis = [rng.choice(premise) for _ in range(rng.randint(3, 6))]
    else:
        others = [w for w in range(2, VOCAB) if w not in premise]
        hypothesis = [rng.choice(others) for _ in range(rng.randint(3, 6))]
        if label == 1:  # neutral: half of them
            hypothesis[::2] = [rng.choice(premise) for _ in hypothesis[::2]]
    return premise, hypothesis, label


def pad(sentences):
    longest = max(map(len, sentences))
    return torch.tensor([s + [PAD] * (longest - len(s)) for s in sentences]).t()


class Batch:
    def __init__(self, examples):
        self.premise = pad([e[0] for e in examples])
        self.hypothesis = pad([e[1] for e in examples])
        self.label = torch.tensor([e[2] for e in examples])
        self.batch_size = len(examples)


class BucketIterator:
    def __init__(self, examples, train):
        self.examples, self.train = examples, train

    def __len__(self):
        return len(self.examples) // args.batch_size

    def __iter__(self):
        order = list(range(len(self.examples)))
        if self.train:
            random.shuffle(order)
        for i in range(0, len(order), args.batch_size):
            yield Batch([self.examples[k] for k in order[i : i + args.batch_size]])


rng = random.Random(0)
train_iter = BucketIterator([example(rng) for _ in range(1600)], train=True)
dev_iter = BucketIterator([example(rng) for _ in range(320)], train=False)


class SNLIClassifier(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.projection = nn.Linear(d, d)
        self.encoder = nn.LSTM(d, d, bidirectional=True)
        self.out = nn.Sequential(nn.Linear(8 * d, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 3))

    def encode(self, sentence):
        states, _ = self.encoder(torch.relu(self.projection(self.embed(sentence))))
        return states.amax(0)

    def forward(self, batch):
        premise, hypothesis = self.encode(batch.premise), self.encode(batch.hypothesis)
        both = [premise, hypothesis, (premise - hypothesis).abs(), premise * hypothesis]
        return self.out(torch.cat(both, 1))


model = SNLIClassifier()
criterion = nn.CrossEntropyLoss()
opt = O.Adam(model.parameters(), lr=3e-3)

iterations = 0
best_dev_acc = -1
os.makedirs(args.save_path, exist_ok=True)
print("  Time Epoch Iteration Progress    (%Epoch)   Loss   Dev/Loss     Accuracy  Dev/Accuracy")
for epoch in range(args.epochs):
    n_correct, n_total = 0, 0
    for batch in train_iter:
        # switch model to training mode, clear gradient accumulators
        model.train()
        opt.zero_grad()
        iterations += 1
        answer = model(batch)
        n_correct += (answer.argmax(1) == batch.label).sum().item()
        n_total += batch.batch_size
        loss = criterion(answer, batch.label)
        loss.backward()
        opt.step()
        if iterations % args.log_every == 0:
            print(f"{epoch} {iterations} loss {loss.item()} accuracy {100 * n_correct / n_total}")
        if iterations % args.dev_every == 0:
            # switch model to evaluation mode
            model.eval()
            n_dev_correct, dev_loss = 0, 0.0
            with torch.no_grad():
                for dev_batch in dev_iter:
                    answer = model(dev_batch)
                    n_dev_correct += (answer.argmax(1) == dev_batch.label).sum().item()
                    dev_loss += criterion(answer, dev_batch.label).item() * dev_batch.batch_size
            dev_acc = 100.0 * n_dev_correct / 320
            print(f"{epoch} {iterations} dev loss {dev_loss / 320} dev accuracy {dev_acc}")
            if dev_acc > best_dev_acc:
                best_dev_acc = dev_acc
                torch.save(model, f"{args.save_path}/best_snapshot_model.pt")
