"""Small causal language model on packed documents with per-document attention."""
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(15)
torch.set_num_threads(1)

PAD, BOS = 0, 1
WORDS, STYLES = 300, 6
VOCAB = 2 + STYLES + WORDS            # pad, bos, style tokens, words
SEQ, DIM, HEADS = 48, 48, 4
EPOCHS, BATCH = 6, 32
rng = np.random.RandomState(3)

# each style walks over the words with its own step; a document states its style after <bos>
STEPS = [7, 23, 58, 101, 149, 211]


def make_doc():
    style = rng.randint(STYLES)
    word = rng.randint(WORDS)
    doc = [BOS, 2 + style]
    for _ in range(rng.randint(5, 16)):
        doc.append(2 + STYLES + word)
        word = (word + STEPS[style]) % WORDS if rng.rand() < 0.9 else rng.randint(WORDS)
    return doc


def pack(n_docs):
    """Greedy packing: documents go one after another into rows of SEQ + 1 tokens, rest is padding."""
    rows, row = [], []
    for _ in range(n_docs):
        doc = make_doc()
        if len(row) + len(doc) > SEQ + 1:
            rows.append(row + [PAD] * (SEQ + 1 - len(row)))
            row = []
        row = row + doc
    rows.append(row + [PAD] * (SEQ + 1 - len(row)))
    return torch.from_numpy(np.array(rows).astype(np.int16)).long()


train, val, test = pack(4000), pack(400), pack(600)


def segments(ids):
    """Document number of each token and the position of each token inside its document."""
    seg = (ids == BOS).long().cumsum(dim=1)
    index = torch.arange(ids.shape[1]).expand_as(ids)
    start = torch.where(ids == BOS, index, torch.zeros_like(index)).cummax(dim=1).values
    return seg, index - start


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, allowed):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, DIM))
        return x + self.mlp(self.ln2(x))


class PackedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(SEQ, DIM)
        self.blocks = nn.ModuleList([Block() for _ in range(1)])
        self.ln = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        seg, pos = segments(ids)
        same_doc = seg[:, :, None] == seg[:, None, :]
        causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        allowed = (same_doc & causal)[:, None]
        x = self.tok(ids) + self.pos(pos)
        for block in self.blocks:
            x = block(x, allowed)
        return self.head(self.ln(x))


def loss_sum(model, rows):
    """Summed next-token loss and the number of tokens it covers (padding and <bos> are not predicted)."""
    inputs, targets = rows[:, :-1], rows[:, 1:].clone()
    targets[(targets == PAD) | (targets == BOS)] = -100
    logits = model(inputs)
    total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    return total, (targets != -100).sum()


@torch.no_grad()
def evaluate(model, rows):
    model.eval()
    total, count = 0.0, 0
    for chunk in rows.split(128):
        s, n = loss_sum(model, chunk)
        total += s.item()
        count += n.item()
    return total / count


model = PackedLM()
opt = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.01)
steps = len(train) // BATCH
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1.2e-2, total_steps=EPOCHS * steps, pct_start=0.2)
print(f"rows {len(train)} fill {(train != PAD).float().mean().item():.3f} largest token id {train.max().item()}")

best, best_state = float("inf"), None
for epoch in range(EPOCHS):
    model.train()
    perm = torch.randperm(len(train))
    total = 0.0
    for i in range(steps):
        s, n = loss_sum(model, train[perm[i * BATCH:(i + 1) * BATCH]])
        loss = s / n
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        total += loss.item()
    val_loss = evaluate(model, val)
    if val_loss < best:
        best, best_state = val_loss, copy.deepcopy(model.state_dict())
    print(f"epoch {epoch} train {total / steps:.4f} val {val_loss:.4f} val ppl {np.exp(val_loss):.2f}")

model.load_state_dict(best_state)
test_loss = evaluate(model, test)


@torch.no_grad()
def continuation_accuracy(n=300):
    """Give bos, style and one word; how often is the likeliest next word the one the style asks for?"""
    style = rng.randint(STYLES, size=n)
    word = rng.randint(WORDS, size=n)
    prompt = torch.tensor(np.stack([np.full(n, BOS), 2 + style, 2 + STYLES + word], 1))
    expected = torch.tensor(2 + STYLES + (word + np.array(STEPS)[style]) % WORDS)
    return (model(prompt)[:, -1].argmax(-1) == expected).float().mean().item()


print(f"test loss {test_loss:.4f} ppl {np.exp(test_loss):.2f} continuation accuracy {continuation_accuracy():.3f}")
