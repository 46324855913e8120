import math
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class Config:
    text_path: str = "data/shakespeare.txt"
    ckpt: str = "gpt_char.pt"
    block_size: int = 256
    batch_size: int = 32
    accum_steps: int = 4
    n_layer: int = 6
    n_head: int = 6
    n_embd: int = 384
    dropout: float = 0.2
    max_lr: float = 6e-4
    min_lr: float = 6e-5
    warmup: int = 100
    max_iters: int = 5000
    eval_every: int = 250
    eval_iters: int = 100
    grad_clip: float = 1.0

cfg, device = Config(), "cuda"
torch.manual_seed(1337)
text = open(cfg.text_path, encoding="utf-8").read()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
n = int(0.9 * len(data))
splits = {"train": data[:n], "val": data[n:]}

def get_batch(split):
    d = splits[split]
    ix = torch.randint(len(d) - cfg.block_size - 1, (cfg.batch_size,))
    x = torch.stack([d[i:i + cfg.block_size] for i in ix])
    y = torch.stack([d[i + 1:i + 1 + cfg.block_size] for i in ix])
    return x.to(device), y.to(device)

class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n_head = c.n_head
        self.qkv = nn.Linear(c.n_embd, 3 * c.n_embd)
        self.proj = nn.Linear(c.n_embd, c.n_embd)
        self.drop = nn.Dropout(c.dropout)
        self.register_buffer("mask", torch.tril(torch.ones(c.block_size, c.block_size, dtype=torch.bool)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = q @ k.transpose(-2, -1) / math.sqrt(C // self.n_head)
        att = att.masked_fill(~self.mask[:T, :T], float("-inf"))
        att = self.drop(F.softmax(att, dim=-1))
        return self.proj((att @ v).transpose(1, 2).reshape(B, T, C))

class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.attn = Attention(c)
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(),
                                 nn.Linear(4 * c.n_embd, c.n_embd), nn.Dropout(c.dropout))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

class GPT(nn.Module):
    def __init__(self, c, vocab_size):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, c.n_embd)
        self.pos = nn.Embedding(c.block_size, c.n_embd)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.n_layer)])
        self.ln_f = nn.LayerNorm(c.n_embd)
        self.head = nn.Linear(c.n_embd, vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1), device=idx.device))
        logits = self.head(self.ln_f(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    @torch.no_grad()
    def generate(self, idx, n_new):
        for _ in range(n_new):
            logits, _ = self(idx[:, -self.pos.num_embeddings:])
            probs = F.softmax(logits[:, -1].float(), dim=-1)
            idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
        return idx

def get_lr(it):
    if it < cfg.warmup:
        return cfg.max_lr * (it + 1) / cfg.warmup
    ratio = (it - cfg.warmup) / (cfg.max_iters - cfg.warmup)
    return cfg.min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (cfg.max_lr - cfg.min_lr)

@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {}
    for split in splits:
        out[split] = sum(model(*get_batch(split))[1].item() for _ in range(cfg.eval_iters)) / cfg.eval_iters
    model.train()
    return out

model = GPT(cfg, len(chars)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.max_lr, betas=(0.9, 0.99), weight_decay=0.1)
scaler = torch.cuda.amp.GradScaler()
best_val = float("inf")

for it in range(cfg.max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    optimizer.zero_grad(set_to_none=True)
    for micro in range(cfg.accum_steps):
        xb, yb = get_batch("train")
        with torch.autocast("cuda", dtype=torch.float16):
            _, loss = model(xb, yb)
        scaler.scale(loss / cfg.accum_steps).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
    scaler.step(optimizer)
    scaler.update()
    if (it + 1) % cfg.eval_every == 0:
        losses = estimate_loss(model)
        print(f"iter {it + 1}: train {losses['train']:.4f} val {losses['val']:.4f}")
        if losses["val"] < best_val:
            best_val = losses["val"]
            torch.save({"model": model.state_dict(), "config": asdict(cfg), "chars": chars},
                       cfg.ckpt)

model.eval()
sample = model.generate(torch.zeros(1, 1, dtype=torch.long, device=device), 500)[0].tolist()
print("".join(chars[i] for i in sample))
