import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class LoRALinear(nn.Module):
    """Frozen linear layer plus a trainable low-rank update."""

    def __init__(self, base: nn.Linear, rank=4, alpha=8):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scaling = alpha / rank
        self.merged = False

    def delta(self):
        return self.scaling * self.B @ self.A

    def merge(self):
        self.base.weight.data += self.delta().detach()
        self.merged = True

    def unmerge(self):
        self.base.weight.data -= self.delta().detach()
        self.merged = False

    def forward(self, x):
        out = self.base(x)
        if self.merged:
            return out
        return out + self.scaling * (x @ self.A.t()) @ self.B.t()


class Encoder(nn.Module):
    def __init__(self, dim=20, width=64, classes=5):
        super().__init__()
        self.fc1 = nn.Linear(dim, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        h = F.gelu(self.fc1(x))
        h = h + F.gelu(self.fc2(h))
        h = h + F.gelu(self.fc3(h))
        return self.head(h)


def make_task(n, rot, proto, gen):
    y = torch.randint(0, 5, (n,), generator=gen)
    k = torch.randint(0, 4, (n,), generator=gen)
    x = proto[y, k] + 0.5 * torch.randn(n, proto.shape[-1], generator=gen)
    return x @ rot, y


def inject(model, rank=4):
    for name in ("fc1", "fc2", "fc3"):
        setattr(model, name, LoRALinear(getattr(model, name), rank))
    return model


def set_merged(model, flag):
    for m in model.modules():
        if isinstance(m, LoRALinear):
            m.merge() if flag else m.unmerge()


def evaluate(model, x, y):
    model.eval()
    set_merged(model, True)
    with torch.no_grad():
        logits = model(x)
    set_merged(model, False)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def pretrain(model, x, y, steps=250):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        i = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(model(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"pretrained, last loss {loss.item():.4f}")


torch.manual_seed(1)
g = torch.Generator().manual_seed(1)
proto = torch.randn(5, 4, 20, generator=g)
shift, _ = torch.linalg.qr(torch.eye(20) + 0.35 * torch.randn(20, 20, generator=g))
x_src, y_src = make_task(3000, torch.eye(20), proto, g)
x_tgt, y_tgt = make_task(1200, shift, proto, g)
x_val, y_val = make_task(600, shift, proto, g)

model = Encoder()
pretrain(model, x_src, y_src)

for p in model.parameters():
    p.requires_grad = False
model = inject(model)
trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=3e-3, weight_decay=0.01)
print("trainable parameters:", sum(p.numel() for p in model.parameters() if p.requires_grad))
loader = DataLoader(TensorDataset(x_tgt, y_tgt), batch_size=48, shuffle=True)
for epoch in range(10):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    vl, va = evaluate(model, x_val, y_val)
    print(f"epoch {epoch}: train {total / len(loader):.4f} val {vl:.4f} acc {va:.3f}")
