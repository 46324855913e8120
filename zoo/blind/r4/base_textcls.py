"""Two stages: word vectors from plain text, then a small classifier on top of them (vectors stay fixed)."""
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_TOPICS, WORDS_PER_TOPIC, LEN = 5, 60, 14


def write_docs(n, rng):
    topics = rng.integers(0, N_TOPICS, n)
    docs = []
    for t in topics:
        sub = rng.integers(0, 2)
        words = []
        for _ in range(LEN):
            if rng.random() < 0.3:
                words.append(f"t{t}_{2 * rng.integers(0, WORDS_PER_TOPIC // 2) + sub}")
            else:
                words.append(f"common{int(rng.integers(0, 80))}")
        docs.append(words)
    return docs, torch.from_numpy(topics)


def build_vocab(docs):
    counts = Counter(w for d in docs for w in d)
    return {w: i + 1 for i, (w, _) in enumerate(counts.most_common())}


def encode(docs, vocab):
    return torch.tensor([[vocab.get(w, 0) for w in d] for d in docs])


class WordVectors(nn.Module):
    def __init__(self, n_words, dim):
        super().__init__()
        self.table = nn.Embedding(n_words, dim)

    def fit(self, ids, n_words, dim):
        """positive PMI of words of one document, factorised"""
        onehot = F.one_hot(ids, n_words).sum(1).float()
        co = onehot.t() @ onehot
        co.fill_diagonal_(0)
        p = co.sum(1, keepdim=True)
        pmi = torch.log((co * co.sum() + 1e-8) / (p * p.t() + 1e-8)).clamp(min=0)
        u, s, _ = torch.linalg.svd(pmi)
        self.table.weight.data = u[:, :dim] * s[:dim].sqrt()
        return self


class Classifier(nn.Module):
    def __init__(self, n_words, dim):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim)
        self.fc1 = nn.Linear(dim, 48)
        self.fc2 = nn.Linear(48, N_TOPICS)

    def forward(self, ids):
        v = self.emb(ids).mean(1)
        return self.fc2(torch.relu(self.fc1(v)))


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(4)
    raw, _ = write_docs(2500, rng)
    train_docs, y_train = write_docs(100, rng)
    test_docs, y_test = write_docs(400, rng)

    vocab = build_vocab(raw)
    dim, n_words = 16, len(vocab) + 1
    vectors = WordVectors(n_words, dim).fit(encode(raw, vocab), n_words, dim)
    print(f"word vectors: {n_words} x {dim}")

    x_train, x_test = encode(train_docs, vocab), encode(test_docs, vocab)
    model = Classifier(n_words, dim)
    weights = {k.replace("table", "emb"): v for k, v in vectors.state_dict().items()}
    model.load_state_dict(weights, strict=False)
    for name, p in model.named_parameters():
        if name.startswith("emb"):
            p.requires_grad = False
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    for epoch in range(40):
        model.train()
        losses = []
        for idx in torch.randperm(len(x_train)).split(16):
            loss = F.cross_entropy(model(x_train[idx]), y_train[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                out = model(x_test)
            acc = (out.argmax(1) == y_test).float().mean()
            print(f"epoch {epoch + 1:2d}  train loss {np.mean(losses):.3f}  test loss {F.cross_entropy(out, y_test):.3f}  test acc {acc:.3f}")


if __name__ == "__main__":
    main()
