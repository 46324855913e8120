"""fp16 autocast with GradScaler: the scale starts far too high and keeps probing upwards."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
torch.set_num_threads(1)

DIM, CLASSES, BATCH, STEPS = 32, 6, 32, 360


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(DIM, width), nn.Linear(width, width), nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))))


def make_world():
    g = torch.Generator().manual_seed(2)
    return torch.randn(CLASSES, DIM, generator=g)


def draw(centres):
    y = torch.randint(0, CLASSES, (BATCH,))
    return centres[y] + 1.4 * torch.randn(BATCH, DIM), y


def main():
    centres = make_world()
    net = Net()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 40, growth_interval=12)
    skipped = 0
    for step in range(STEPS):
        x, y = draw(centres)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(net(x).float(), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        scaler.step(opt)
        scaler.update()
        was_skipped = scaler.get_scale() < before
        skipped += was_skipped
        if step % 15 == 0 or was_skipped:
            print(f"step {step} loss {loss.item():.4f} grad norm {norm.item():.3f} scale {before:.0f} "
                  f"{'SKIPPED' if was_skipped else ''}")
    ok = all(torch.isfinite(p).all().item() for p in net.parameters())
    print(f"skipped {skipped} of {STEPS} steps, weights finite: {ok}")


if __name__ == "__main__":
    main()
