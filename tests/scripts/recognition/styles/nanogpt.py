"""A language model without a loader: `get_batch`, configuration in globals, micro steps."""

import math
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.nn as nn
from torch.nn import functional as F

out_dir = "out"
eval_interval, eval_iters = 20, 2
gradient_accumulation_steps = 2
batch_size = block_size = 12
learning_rate, grad_clip, max_iters = 1e-3, 1.0, 60
config_keys = [k for k, v in globals().items() if isinstance(v, (int, float, str))]
exec("warmup_iters = 5\nmin_lr = 1e-4")
config = {k: globals()[k] for k in config_keys if not k.startswith("_")}
torch.manual_seed(1337)
ctx = nullcontext()
tokens = torch.cat([torch.arange(17).roll(i % 5) for i in range(120)])
data = {"train": tokens[:1700], "val": tokens[1700:]}


def get_batch(split):
    source = data[split]
    ix = torch.randint(len(source) - block_size, (batch_size,))
    x = torch.stack([source[i : i + block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n), nn.LayerNorm(n)
        self.c_attn, self.c_proj = nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.mlp = nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))

    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).chunk(3, dim=-1)
        x = x + self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab, n=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n), nn.Embedding(block_size, n)
        self.h = nn.ModuleList([Block(n) for _ in range(2)])
        self.lm_head = nn.Linear(n, vocab, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(x)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


model = GPT(17)
scaler = torch.amp.GradScaler("cpu", enabled=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in ["train", "val"]:
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            X, Y = get_batch(split)
            with ctx:
                _, loss = model(X, Y)
            losses[k] = loss.item()
        out[split] = losses.mean()
    model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    return min_lr + 0.5 * (1 + math.cos(math.pi * it / max_iters)) * (learning_rate - min_lr)


Path(out_dir).mkdir(exist_ok=True)
iter_num, best_val_loss, running_mfu = 0, 1e9, -1.0
raw_model = model
X, Y = get_batch("train")
while True:
    lr = get_lr(iter_num)
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr
    if iter_num % eval_interval == 0:
        losses = estimate_loss()
        print(f"step {iter_num}: train {losses['train']:.4f}, val {losses['val']:.4f}")
        if losses["val"] < best_val_loss:
            best_val_loss = losses["val"]
            if iter_num > 0:
                torch.save(
                    {"model": raw_model.state_dict(), "config": config}, f"{out_dir}/ckpt.pt"
                )
    for micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch("train")
        scaler.scale(loss).backward()
    if grad_clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    iter_num += 1
    if iter_num > max_iters:
        break
