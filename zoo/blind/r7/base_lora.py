"""Adapt a small pretrained language model to a dialect with LoRA, then merge the adapters."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
torch.set_num_threads(1)

VOCAB, SEQ, DIM, LAYERS = 24, 12, 32, 1
RANK, LORA_ALPHA = 8, 32
PRE_STEPS, EPOCHS, STEPS, BATCH = 260, 6, 40, 64

gen = torch.Generator().manual_seed(9)
src_T = torch.softmax(2.5 * torch.randn(VOCAB, VOCAB, generator=gen), dim=-1)
dia_T = src_T.clone()
swap = torch.randperm(VOCAB, generator=gen)[:16]
dia_T[swap] = src_T[swap.roll(1)]          # the dialect exchanges the habits of 16 tokens


def sample_chain(T, n):
    seq = torch.zeros(n, SEQ + 1, dtype=torch.long)
    seq[:, 0] = torch.randint(VOCAB, (n,), generator=gen)
    for t in range(SEQ):
        seq[:, t + 1] = torch.multinomial(T[seq[:, t]], 1, generator=gen).squeeze(1)
    return seq


src_train, src_val = sample_chain(src_T, 4000), sample_chain(src_T, 800)
dia_train, dia_val, dia_test = sample_chain(dia_T, 2000), sample_chain(dia_T, 600), sample_chain(dia_T, 800)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.fc1 = nn.Linear(DIM, 4 * DIM)
        self.fc2 = nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a)
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.zeros(SEQ, DIM))
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.shape[1]]
        for b in self.blocks:
            x = b(x)
        return self.head(self.ln(x))


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        self.enabled = True

    def forward(self, x):
        out = self.base(x)
        if self.enabled:
            out = out + self.scale * (x @ self.lora_A.t() @ self.lora_B.t())
        return out

    @torch.no_grad()
    def merged(self):
        self.base.weight += self.scale * (self.lora_B @ self.lora_A)
        return self.base


def inject_lora(model):
    for block in model.blocks:
        for name in ("qkv", "fc1", "fc2"):
            setattr(block, name, LoRALinear(getattr(block, name), RANK, LORA_ALPHA))


def merge_lora(model):
    for block in model.blocks:
        for name in ("qkv", "fc1", "fc2"):
            setattr(block, name, getattr(block, name).merged())


def lm_loss(model, seq):
    return F.cross_entropy(model(seq[:, :-1]).reshape(-1, VOCAB), seq[:, 1:].reshape(-1))


@torch.no_grad()
def perplexity(model, seq, adapters=True):
    model.eval()
    for m in model.modules():
        if isinstance(m, LoRALinear):
            m.enabled = adapters
    ppl = lm_loss(model, seq).exp().item()
    for m in model.modules():
        if isinstance(m, LoRALinear):
            m.enabled = True
    return ppl


pre = TinyLM()
opt = torch.optim.AdamW(pre.parameters(), lr=4e-3, weight_decay=0.01)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=PRE_STEPS)
for step in range(PRE_STEPS):
    idx = torch.randint(len(src_train), (BATCH,))
    loss = lm_loss(pre, src_train[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
print(f"pretrained: source ppl {perplexity(pre, src_val):.3f} dialect ppl {perplexity(pre, dia_val):.3f}")
ckpt = {k: v.clone() for k, v in pre.state_dict().items()}

model = TinyLM()
model.load_state_dict(ckpt)
inject_lora(model)

for name, p in model.named_parameters():
    p.requires_grad_("lora_" in name)
trainable = [p for p in model.parameters() if p.requires_grad]
print("trainable", sum(p.numel() for p in trainable), "of", sum(p.numel() for p in model.parameters()))

opt = torch.optim.AdamW(trainable, lr=6e-3, weight_decay=0.0)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS * STEPS)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for _ in range(STEPS):
        idx = torch.randint(len(dia_train), (BATCH,))
        loss = lm_loss(model, dia_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        total += loss.item()
    print(f"epoch {epoch} train {total / STEPS:.4f} val dialect ppl {perplexity(model, dia_val):.3f} "
          f"source ppl with adapters off {perplexity(model, src_val, adapters=False):.3f}")

off_src = perplexity(model, src_val, adapters=False)
live = perplexity(model, dia_test)
merge_lora(model)
merged = perplexity(model, dia_test)
print(f"test dialect ppl live {live:.3f} merged {merged:.3f}")
print(f"source ppl with adapters off {off_src:.3f}")
