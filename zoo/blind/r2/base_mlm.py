"""Masked-token pretraining of a small encoder on synthetic 'sentences'."""
import torch
import torch.nn as nn

VOCAB, MASK, LEN = 16, 16, 10
EPOCHS, STEPS_PER_EPOCH, BATCH = 6, 35, 48
WARMUP = 25


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    start = torch.randint(0, VOCAB, (n, 1), generator=g)
    stride = torch.randint(1, 3, (n, 1), generator=g)
    return (start + stride * torch.arange(LEN)) % VOCAB


def mask_tokens(ids, prob=0.15):
    labels = ids.clone()
    chosen = torch.rand(ids.shape) < prob
    ids[chosen] = MASK
    return ids, labels.masked_fill(~chosen, -100)


class Encoder(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.tok = nn.Embedding(VOCAB + 1, d)
        self.pos = nn.Parameter(torch.randn(1, LEN, d))
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, VOCAB + 1)

    def forward(self, ids):
        return self.head(self.norm(self.body(self.tok(ids) + self.pos)))


def lr_lambda(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    total = EPOCHS * STEPS_PER_EPOCH
    return max(0.02, (total - step) / (total - WARMUP))


@torch.no_grad()
def fill_in_accuracy(model, seqs):
    """hide one token per sentence and ask for it back"""
    model.eval()
    where = torch.randint(0, LEN, (len(seqs),))
    probe = seqs.clone()
    rows = torch.arange(len(seqs))
    probe[rows, where] = MASK
    guess = model(probe)[rows, where].argmax(-1)
    model.train()
    return (guess == seqs[rows, where]).float().mean().item()


def main():
    torch.manual_seed(5)
    train, held = corpus(4000, 1), corpus(400, 2)
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)

    for epoch in range(EPOCHS):
        total = 0.0
        for _ in range(STEPS_PER_EPOCH):
            batch = train[torch.randint(0, len(train), (BATCH,))]
            inputs, labels = mask_tokens(batch)
            logits = model(inputs)
            loss = criterion(logits.float().flatten(0, 1), labels.flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        print(f"epoch {epoch}: mlm loss {total / STEPS_PER_EPOCH:.4f}  fill-in accuracy {fill_in_accuracy(model, held):.3f}")


if __name__ == "__main__":
    main()
