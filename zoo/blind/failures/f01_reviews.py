"""Sentiment on short product reviews: averaged word vectors + linear head."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

VOCAB, DIM, MAXLEN = 300, 24, 18
torch.manual_seed(3)


def make_reviews(n):
    polarity = torch.zeros(VOCAB)
    polarity[1:60] = 1.0
    polarity[60:120] = -1.0
    tokens = torch.zeros(n, MAXLEN, dtype=torch.long)
    labels = torch.zeros(n)
    for i in range(n):
        length = int(torch.randint(6, MAXLEN + 1, (1,)))
        words = torch.randint(1, VOCAB, (length,))
        tokens[i, :length] = words
        labels[i] = float(polarity[words].sum() + 0.3 * torch.randn(()) > 0)
    return tokens, labels


class BagOfVectors(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM, padding_idx=0)
        self.hidden = nn.Linear(DIM, 32)
        self.head = nn.Linear(32, 1)

    def forward(self, tokens):
        mask = (tokens != 0).float().unsqueeze(-1)
        vec = (self.emb(tokens) * mask).sum(1) / mask.sum(1)
        return self.head(torch.relu(self.hidden(vec))).squeeze(-1)


def unit_rows(embedding):
    # keep word vectors on the unit sphere
    w = embedding.weight.data
    w.div_(w.norm(dim=1, keepdim=True))


def main():
    tokens, labels = make_reviews(1600)
    loader = DataLoader(TensorDataset(tokens, labels), batch_size=32, shuffle=True)
    model = BagOfVectors()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    step = 0
    for epoch in range(4):
        for xb, yb in loader:
            loss = F.binary_cross_entropy_with_logits(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1
        unit_rows(model.emb)


if __name__ == "__main__":
    main()
