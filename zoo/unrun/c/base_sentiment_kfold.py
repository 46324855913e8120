import re
from collections import Counter

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

SEED, N_FOLDS, EPOCHS, BATCH, MAXLEN, VOCAB = 2021, 5, 4, 64, 256, 30000
device = "cuda" if torch.cuda.is_available() else "cpu"
np.random.seed(SEED)
torch.manual_seed(SEED)

train = pd.read_csv("../input/reviews/train.csv")
test = pd.read_csv("../input/reviews/test.csv")
train = train.drop_duplicates("text").reset_index(drop=True)


def tokenize(text):
    return re.findall(r"[a-z']+|[!?.]", text.lower())[:MAXLEN]


def build_vocab(token_lists):
    counter = Counter(tok for toks in token_lists for tok in toks)
    words = [w for w, _ in counter.most_common(VOCAB)]
    return {w: i + 2 for i, w in enumerate(words)}  # 0 = pad, 1 = unk


class ReviewDataset(Dataset):
    def __init__(self, tokens, vocab, labels=None):
        self.ids = [torch.tensor([vocab.get(t, 1) for t in toks] or [1]) for toks in tokens]
        self.labels = np.zeros(len(tokens)) if labels is None else labels

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i], float(self.labels[i])


def collate(batch):
    ids, labels = zip(*batch)
    lengths = torch.tensor([len(x) for x in ids])
    return pad_sequence(ids, batch_first=True), lengths, torch.tensor(labels)


class GRUClassifier(nn.Module):
    def __init__(self, n_words, emb=128, hidden=128):
        super().__init__()
        self.emb = nn.Embedding(n_words, emb, padding_idx=0)
        self.drop = nn.Dropout(0.3)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 1)

    def forward(self, x, lengths):
        e = self.drop(self.emb(x))
        packed = pack_padded_sequence(e, lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        h = torch.cat([h[-2], h[-1]], dim=1)
        return self.out(self.drop(h)).squeeze(1)


def predict(model, loader):
    model.eval()
    preds = []
    with torch.no_grad():
        for x, lengths, _ in loader:
            preds.append(torch.sigmoid(model(x.to(device), lengths)).cpu().numpy())
    return np.concatenate(preds)


train_tokens = train["text"].map(tokenize).tolist()
test_tokens = test["text"].map(tokenize).tolist()
y = train["label"].values
oof = np.zeros(len(train))
test_pred = np.zeros(len(test))

skf = StratifiedKFold(n_splits=N_FOLDS, shuffle=True, random_state=SEED)
for fold, (trn_idx, val_idx) in enumerate(skf.split(train_tokens, y)):
    trn_tokens = [train_tokens[i] for i in trn_idx]
    val_tokens = [train_tokens[i] for i in val_idx]
    vocab = build_vocab(trn_tokens)
    trn_ds = ReviewDataset(trn_tokens, vocab, y[trn_idx])
    val_ds = ReviewDataset(val_tokens, vocab, y[val_idx])
    trn_loader = DataLoader(trn_ds, BATCH, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(val_ds, 4 * BATCH, shuffle=False, collate_fn=collate)
    test_loader = DataLoader(ReviewDataset(test_tokens, vocab), 4 * BATCH, collate_fn=collate)

    model = GRUClassifier(len(vocab) + 2).to(device)
    n_pos = y[trn_idx].sum()
    pos_weight = torch.tensor((len(trn_idx) - n_pos) / n_pos, dtype=torch.float, device=device)
    criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for x, lengths, labels in trn_loader:
            logits = model(x.to(device), lengths)
            loss = criterion(logits, labels.float().to(device))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        val_pred = predict(model, val_loader)
        print(f"fold {fold} epoch {epoch} loss {total / len(trn_loader):.4f} "
              f"auc {roc_auc_score(y[val_idx], val_pred):.4f}")

    oof[val_idx] = val_pred
    test_pred += predict(model, test_loader) / N_FOLDS
    torch.save(model.state_dict(), f"gru_fold{fold}.pt")

print("OOF AUC:", roc_auc_score(y, oof))
pd.DataFrame({"id": test["id"], "label": test_pred}).to_csv("submission.csv", index=False)
