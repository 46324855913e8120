# character model over made-up names
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(7)
torch.manual_seed(7)
ONSETS = ["br", "k", "l", "m", "tr", "s", "v", "dr", "n"]
VOWELS = ["a", "e", "i", "o", "ai", "u"]
ENDS = ["n", "r", "x", "", "s", "th"]
names = ["".join(random.choice(p) for p in (ONSETS, VOWELS, ONSETS, VOWELS, ENDS)) for _ in range(500)]
chars = sorted(set("".join(names)) | {"."})
stoi = {c: i for i, c in enumerate(chars)}
CTX = 4
X, Y = [], []
for nm in names:
    ctx = [stoi["."]] * CTX
    for ch in nm + ".":
        X.append(list(ctx))
        Y.append(stoi[ch])
        ctx = ctx[1:] + [stoi[ch]]
X, Y = torch.tensor(X), torch.tensor(Y)

V, E, H = len(chars), 12, 64
emb = nn.Embedding(V, E)
mlp = nn.Sequential(nn.Linear(CTX * E, H), nn.Tanh(), nn.Linear(H, V))
params = list(emb.parameters()) + list(mlp.parameters())
opt = torch.optim.AdamW(params, lr=1e-2)

# relative rate per block of 60 updates
TABLE = [1.0, 0.5, 0.25, 100, 0.05]
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: TABLE[min(s // 60, len(TABLE) - 1)])

for it in range(300):
    ix = torch.randint(0, len(X), (64,))
    logits = mlp(emb(X[ix]).view(64, -1))
    loss = F.cross_entropy(logits, Y[ix])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if it % 15 == 0:
        print(f"iter {it:3d} lr {opt.param_groups[0]['lr']:.4g} loss {loss.item():.4f}")
