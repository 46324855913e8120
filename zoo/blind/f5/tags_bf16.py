"""Multi-label tagging with a focal loss under bfloat16 autocast."""
import torch
import torch.nn as nn

torch.manual_seed(101)
torch.set_num_threads(1)
torch.backends.mkldnn.enabled = False   # plain bf16 kernels on this box

FEATS, TAGS, BATCH, STEPS = 64, 30, 64, 450
GAMMA = 1.0


def make_world():
    g = torch.Generator().manual_seed(6)
    w = torch.randn(FEATS, TAGS, generator=g)
    b = torch.linspace(-8.0, 6.0, TAGS)
    return w, b


def draw(world, g):
    w, b = world
    x = torch.randn(BATCH, FEATS, generator=g)
    y = ((x @ w + b) > 0).float()
    wrong = torch.rand(y.shape, generator=g) < 0.02      # annotators slip now and then
    y = torch.where(wrong, 1 - y, y)
    return x, y


class Tagger(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATS, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, TAGS),
        )

    def forward(self, x):
        return torch.sigmoid(self.net(x))


def focal_loss(p, y):
    pos = y * (1 - p) ** GAMMA * torch.log(p)
    neg = (1 - y) * p ** GAMMA * torch.log(1 - p)
    return -(pos + neg).float().mean()


def f1(p, y):
    hit = ((p > 0.5) & (y > 0.5)).sum().item()
    return 2 * hit / max(1.0, (p > 0.5).sum().item() + y.sum().item())


def main():
    world = make_world()
    g = torch.Generator().manual_seed(60)
    model = Tagger()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    for step in range(STEPS):
        x, y = draw(world, g)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            p = model(x)
            loss = focal_loss(p, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 15 == 0:
            print(f"step {step} loss {loss.item():.5f} f1 {f1(p.float(), y):.3f}")


if __name__ == "__main__":
    main()
