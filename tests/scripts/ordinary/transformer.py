"""Character-level GPT; `transformer.py train val` estimates the loss of both splits."""

import hashlib
import json
import math
import os
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
batch_size = 16
block_size = 32
n_layer, n_head, n_embd = 2, 2, 32
learning_rate = 1e-2
min_lr_ratio = 0.1
max_iters = 100
warmup_iters = 10
weight_decay = 0.1
grad_clip = 1.0
eval_interval = 25
eval_iters = 4
eval_splits = sys.argv[1:] or ["val"]
# -----------------------------------------------------------------------------

torch.manual_seed(1337)


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(n_embd, dim=2)
        q = q.view(b, t, n_head, c // n_head).transpose(1, 2)
        k = k.view(b, t, n_head, c // n_head).transpose(1, 2)
        v = v.view(b, t, n_head, c // n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocab_size, n_embd),
                "wpe": nn.Embedding(block_size, n_embd),
                "h": nn.ModuleList([Block() for _ in range(n_layer)]),
                "ln_f": nn.LayerNorm(n_embd),
            }
        )
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight  # weight tying
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.dim() >= 2]
        nodecay = [p for p in self.parameters() if p.dim() < 2]
        groups = [
            {"params": decay, "weight_decay": weight_decay},
            {"params": nodecay, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -block_size:])
            probs = F.softmax(logits[:, -1, :], dim=-1)
            idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
        return idx


# sums of two digits, e.g. "3+4=07;"
pairs = torch.randint(0, 10, (1500, 2)).tolist()
text = "".join(f"{a}+{b}={a + b:02d};" for a, b in pairs)
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
splits = {"train": data[:9000], "val": data[9000:]}


def get_batch(split):
    source = splits[split]
    ix = torch.randint(len(source) - block_size, (batch_size,)).tolist()
    x = torch.stack([source[i : i + block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


model = GPT(len(chars))
optimizer = model.configure_optimizers()


def get_lr(it):
    if it < warmup_iters:
        return (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr_ratio + 0.5 * (1 + math.cos(math.pi * ratio)) * (1 - min_lr_ratio)


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, get_lr)


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in eval_splits:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            x, y = get_batch(split)
            _, loss = model(x, y)
            losses[k] = loss.item()
        out[split] = losses.mean().item()
    model.train()
    return out


history = {"loss": [], "val_loss": [], "grad_norm": [], "lr": []}

for it in range(max_iters + 1):
    if it % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {it}: " + ", ".join(f"{k} loss {v:.4f}" for k, v in losses.items()))
        history["val_loss"].append([it, losses["val"]])
    if it == max_iters:
        break

    xb, yb = get_batch("train")
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    history["lr"].append(optimizer.param_groups[0]["lr"])
    optimizer.step()
    scheduler.step()
    history["loss"].append(loss.item())
    history["grad_norm"].append(norm.item())

model.eval()
sample = model.generate(torch.tensor([[stoi[";"]]]), 21)[0].tolist()
print("".join(chars[i] for i in sample))

if "HISTORY" in os.environ:
    weights = b"".join(v.numpy().tobytes() for v in model.state_dict().values())
    history["weights"] = hashlib.sha256(weights).hexdigest()
    Path(os.environ["HISTORY"]).write_text(json.dumps(history))
