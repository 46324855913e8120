"""Character-level language model on a small corpus of harbour log entries. Flat script."""
import math
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
random.seed(11)
torch.manual_seed(11)

# ---------------------------------------------------------------- settings
block = 48
batch_size = 20
steps = 600
warmup = 40
max_lr = 5e-3
min_lr = 2e-4
d_model, n_head, n_layer = 64, 4, 2
eval_every = 75

# ---------------------------------------------------------------- corpus
ships = ["aurora", "borealis", "petrel", "kestrel", "marigold", "dunlin", "tempest", "halcyon", "osprey", "saltmarsh"]
ports = ["bergen", "tromso", "leith", "hull", "esbjerg", "rostock", "gdansk", "vigo"]
cargo = ["timber", "salted cod", "grain", "copper wire", "machine parts", "wool", "oranges", "coal", "paper rolls"]
people = ["the mate", "the pilot", "the harbour master", "captain nilsen", "captain okafor", "the engineer"]
weather = ["light rain", "thick fog", "clear sky", "a strong gale", "heavy swell", "a fair breeze"]
hours = ["dawn", "noon", "dusk", "midnight"]


def entry(r):
    s, p, q = r.choice(ships), r.choice(ports), r.choice(ports)
    who, load, sky, when = r.choice(people), r.choice(cargo), r.choice(weather), r.choice(hours)
    kind = r.randrange(6)
    if kind == 0:
        return f"the {s} arrived from {p} at {when} with {r.randrange(20, 90)} tons of {load}."
    if kind == 1:
        return f"{who} reported {sky} off {p}, and the {s} waited until {when}."
    if kind == 2:
        return f"the {s} left for {p} carrying {load}; {who} signed the papers."
    if kind == 3:
        return f"at {when} {who} inspected the {s} and found the {load} in good order."
    if kind == 4:
        return f"because of {sky} the {s} turned back to {p} instead of {q}."
    return f"{who} asked the {s} to unload {load} before {when}, then sail to {q}."


rng = random.Random(3)
train_text = "\n".join(entry(rng) for _ in range(2200)) + "\n"
val_text = "\n".join(entry(rng) for _ in range(220)) + "\n"
test_text = "\n".join(entry(rng) for _ in range(220)) + "\n"
lexicon = set("".join(c if c.isalnum() else " " for c in train_text).split())

chars = sorted(set(train_text + val_text + test_text))
stoi = {c: i for i, c in enumerate(chars)}
encode = lambda s: torch.tensor([stoi[c] for c in s], dtype=torch.long)
decode = lambda ids: "".join(chars[i] for i in ids)
train_ids, val_ids, test_ids = encode(train_text), encode(val_text), encode(test_text)
print(f"{len(train_ids)} train / {len(val_ids)} val / {len(test_ids)} test characters, vocabulary {len(chars)}")


def get_batch(ids):
    i = torch.randint(len(ids) - block - 1, (batch_size,))
    x = torch.stack([ids[j:j + block] for j in i])
    y = torch.stack([ids[j + 1:j + block + 1] for j in i])
    return x, y


# ---------------------------------------------------------------- model
class CausalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.register_buffer("mask", torch.tril(torch.ones(block, block, dtype=torch.bool)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in (q, k, v))
        att = q @ k.transpose(-2, -1) / math.sqrt(C // n_head)
        att = att.masked_fill(~self.mask[:T, :T], float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.att = CausalAttention()
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        x = x + self.att(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class CharLM(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok = nn.Embedding(vocab, d_model)
        self.pos = nn.Embedding(block, d_model)
        self.layers = nn.Sequential(*[Layer() for _ in range(n_layer)])
        self.ln = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        return self.head(self.ln(self.layers(x)))

    @torch.no_grad()
    def generate(self, idx, n_new):
        for _ in range(n_new):
            logits = self(idx[:, -block:])[:, -1] / 0.8
            nxt = torch.multinomial(F.softmax(logits, dim=-1), 1)
            idx = torch.cat([idx, nxt], dim=1)
        return idx


@torch.no_grad()
def evaluate(ids):
    model.eval()
    n = (len(ids) - 1) // block
    x = ids[:n * block].view(n, block)
    y = ids[1:n * block + 1].view(n, block)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    model.train()
    return loss


# ---------------------------------------------------------------- training
model = CharLM(len(chars))
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05},
                               {"params": no_decay, "weight_decay": 0.0}], lr=max_lr, betas=(0.9, 0.98))


def lr_at(step):
    if step < warmup:
        return max_lr * (step + 1) / warmup
    t = (step - warmup) / (steps - warmup)
    return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * t))


start, running = time.time(), 0.0
for step in range(steps):
    for g in optimizer.param_groups:
        g["lr"] = lr_at(step)
    x, y = get_batch(train_ids)
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    running += loss.item()
    if (step + 1) % eval_every == 0:
        print(f"step {step + 1:4d}  lr {lr_at(step):.5f}  train {running / eval_every:.4f}  "
              f"val {evaluate(val_ids):.4f}  ({time.time() - start:.1f}s)")
        running = 0.0

test_loss = evaluate(test_ids)
prompts = torch.stack([test_ids[k * 600:k * 600 + 16] for k in range(8)])
texts = [decode(row.tolist()) for row in model.generate(prompts, 220)]
print("sample:", repr(texts[0]))
words = [w for t in texts for w in "".join(c if c.isalnum() else " " for c in t[16:]).split()[1:]]
share = sum(len(w) for w in words if w in lexicon) / sum(len(t) - 16 - t[16:].count(" ") for t in texts)
print(f"test loss {test_loss:.4f}  bits per character {test_loss / math.log(2):.3f}  known words in samples {share:.3f}")
