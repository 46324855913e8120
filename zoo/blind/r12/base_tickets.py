"""Multi-label tagging of support tickets (averaged word embeddings + MLP)."""
import numpy as np
import torch
from torch import nn
from sklearn.metrics import f1_score, average_precision_score

CFG = dict(n_threads=650, labels=10, emb=48, hidden=64, lr=3e-3, batch=48, epochs=8, seed=5, wd=1e-4)


def build_corpus(cfg):
    rng = np.random.default_rng(cfg["seed"])
    L = cfg["labels"]
    freq = np.geomspace(0.30, 0.05, L)
    keywords = [[f"kw{l}_{k}" for k in range(10)] for l in range(L)]
    common = [f"w{i}" for i in range(250)]
    docs, tags, thread_ids = [], [], []
    for th in range(cfg["n_threads"]):
        y = (rng.random(L) < freq).astype(np.float32)
        names = [f"cust{th}", f"order{th}", f"host{th}"]
        for _ in range(rng.integers(3, 9)):
            words = list(rng.choice(common, size=rng.integers(8, 16)))
            for l in range(L):
                if y[l]:
                    k = rng.poisson(2.6)
                    words += list(rng.choice(keywords[l], size=k))
                elif rng.random() < 0.05:
                    words.append(str(rng.choice(keywords[l])))
            words += list(rng.choice(names, size=3))
            rng.shuffle(words)
            docs.append([str(w) for w in words])
            tags.append(y)
            thread_ids.append(th)
    return docs, np.array(tags), np.array(thread_ids)


def split(thread_ids, seed, val_frac=0.25):
    rng = np.random.default_rng(seed + 1)
    groups = np.unique(thread_ids)
    rng.shuffle(groups)
    held = groups[: int(len(groups) * val_frac)]
    is_val = np.isin(thread_ids, held)
    return np.where(~is_val)[0], np.where(is_val)[0]


class Vocab:
    def __init__(self, docs):
        self.index = {"<unk>": 0}
        for d in docs:
            for w in d:
                self.index.setdefault(w, len(self.index))

    def __call__(self, doc):
        return torch.tensor([self.index.get(w, 0) for w in doc])


def make_batch(docs, tags, idx, vocab):
    toks = [vocab(docs[i]) for i in idx]
    offsets = torch.tensor([0] + [len(t) for t in toks[:-1]]).cumsum(0)
    return torch.cat(toks), offsets, torch.from_numpy(tags[idx])


class Tagger(nn.Module):
    def __init__(self, n_words, emb, hidden, labels):
        super().__init__()
        self.bag = nn.EmbeddingBag(n_words, emb, mode="mean")
        self.fc1 = nn.Linear(emb, hidden)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(hidden, labels)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.normal_(self.bag.weight, std=0.3)
        for m in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, toks, offsets):
        x = self.bag(toks, offsets)
        x = self.drop(torch.relu(self.fc1(x)))
        return self.fc2(x)


def label_weights(y):
    pos = y.sum(0)
    neg = len(y) - pos
    return torch.tensor(np.sqrt(neg / pos), dtype=torch.float32)


@torch.no_grad()
def evaluate(model, docs, tags, idx, vocab, criterion):
    model.eval()
    logits, losses = [], []
    for s in range(0, len(idx), 256):
        toks, off, y = make_batch(docs, tags, idx[s:s + 256], vocab)
        out = model(toks, off)
        losses.append(criterion(out, y).item() * len(y))
        logits.append(out)
    probs = torch.sigmoid(torch.cat(logits)).numpy()
    truth = tags[idx]
    pred = probs > 0.5
    return dict(loss=sum(losses) / len(idx),
                micro=f1_score(truth, pred, average="micro", zero_division=0),
                macro=f1_score(truth, pred, average="macro", zero_division=0),
                mAP=average_precision_score(truth, probs, average="macro"))


def run(cfg):
    torch.manual_seed(cfg["seed"])
    docs, tags, thread_ids = build_corpus(cfg)
    tr, va = split(thread_ids, cfg["seed"])
    vocab = Vocab([docs[i] for i in tr])
    print(f"{len(tr)} train / {len(va)} val tickets, {len(vocab.index)} words, positives per label {tags[tr].sum(0).astype(int)}")

    model = Tagger(len(vocab.index), cfg["emb"], cfg["hidden"], cfg["labels"])
    criterion = nn.BCEWithLogitsLoss(pos_weight=label_weights(tags[tr]))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["wd"])
    rng = np.random.default_rng(cfg["seed"])

    for epoch in range(cfg["epochs"]):
        model.train()
        order = rng.permutation(tr)
        running = 0.0
        for s in range(0, len(order), cfg["batch"]):
            toks, off, y = make_batch(docs, tags, order[s:s + cfg["batch"]], vocab)
            opt.zero_grad()
            loss = criterion(model(toks, off), y)
            loss.backward()
            opt.step()
            running += loss.item() * len(y)
        m = evaluate(model, docs, tags, va, vocab, criterion)
        print(f"epoch {epoch:02d}  train {running / len(order):.4f}  val {m['loss']:.4f}  "
              f"micro-F1 {m['micro']:.3f}  macro-F1 {m['macro']:.3f}  mAP {m['mAP']:.3f}")
    return model


if __name__ == "__main__":
    run(CFG)
