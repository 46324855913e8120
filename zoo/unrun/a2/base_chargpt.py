"""Character-level GPT on a plain text file, with sampling."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    text_path: str = "input.txt"
    block_size: int = 128
    batch_size: int = 48
    n_layer: int = 6
    n_head: int = 6
    n_embd: int = 192
    dropout: float = 0.2
    lr: float = 1e-3
    min_lr: float = 1e-4
    warmup: int = 100
    max_steps: int = 5000
    eval_every: int = 250
    eval_batches: int = 50
    weight_decay: float = 0.1
    grad_clip: float = 1.0


cfg = Config()
torch.manual_seed(1337)
device = "cuda" if torch.cuda.is_available() else "cpu"

text = open(cfg.text_path, encoding="utf-8").read()
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
n_train = int(0.9 * len(data))
splits = {"train": data[:n_train], "val": data[n_train:]}


def get_batch(split):
    d = splits[split]
    starts = torch.randint(len(d) - cfg.block_size, (cfg.batch_size,)).tolist()
    x = torch.stack([d[i:i + cfg.block_size] for i in starts])
    y = torch.stack([d[i + 1:i + 1 + cfg.block_size] for i in starts])
    return x.to(device), y.to(device)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.ln1, self.ln2 = nn.LayerNorm(cfg.n_embd), nn.LayerNorm(cfg.n_embd)
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(),
                                 nn.Linear(4 * cfg.n_embd, cfg.n_embd), nn.Dropout(cfg.dropout))
        self.drop = nn.Dropout(cfg.dropout)
        self.register_buffer("mask", torch.tril(torch.ones(cfg.block_size, cfg.block_size)))

    def attend(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        att = self.drop(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.drop(self.proj(y))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, cfg, vocab):
        super().__init__()
        self.tok = nn.Embedding(vocab, cfg.n_embd)
        self.pos = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.drop = nn.Dropout(cfg.dropout)
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.n_layer)])
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.head = nn.Linear(cfg.n_embd, vocab, bias=False)
        self.head.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.02)

    def forward(self, idx, targets=None):
        T = idx.size(1)
        x = self.drop(self.tok(idx) + self.pos(torch.arange(T, device=idx.device)))
        logits = self.head(self.ln_f(self.blocks(x)))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, n, temperature=0.8, top_k=20):
        for _ in range(n):
            logits, _ = self(idx[:, -cfg.block_size:])
            logits = logits[:, -1, :] / temperature
            kth = torch.topk(logits, top_k).values[:, -1:]
            logits = logits.masked_fill(logits < kth, float("-inf"))
            probs = F.softmax(logits, dim=-1)
            idx = torch.cat([idx, torch.multinomial(probs, 1)], dim=1)
        return idx


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {}
    for split in splits:
        out[split] = sum(model(*get_batch(split))[1].item() for _ in range(cfg.eval_batches)) / cfg.eval_batches
    model.train()
    return out


def lr_at(step):
    if step < cfg.warmup:
        return cfg.lr * (step + 1) / cfg.warmup
    t = (step - cfg.warmup) / (cfg.max_steps - cfg.warmup)
    return cfg.min_lr + 0.5 * (cfg.lr - cfg.min_lr) * (1 + math.cos(math.pi * t))


model = GPT(cfg, len(chars)).to(device)
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": cfg.weight_decay},
                               {"params": no_decay, "weight_decay": 0.0}], lr=cfg.lr, betas=(0.9, 0.95))
best = float("inf")
for step in range(cfg.max_steps):
    if step % cfg.eval_every == 0:
        losses = estimate_loss(model)
        print(f"{step}: train {losses['train']:.4f} val {losses['val']:.4f}")
        if losses["val"] < best:
            best = losses["val"]
            torch.save({"model": model.state_dict(), "step": step, "cfg": cfg}, "chargpt.pt")
    for group in optimizer.param_groups:
        group["lr"] = lr_at(step)
    _, loss = model(*get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
    optimizer.step()

model.eval()
prompt = torch.tensor([[stoi["\n"]]], device=device)
print("".join(itos[i] for i in model.generate(prompt, 500)[0].tolist()))
