"""Single-object detector on synthetic frames: centre offsets plus log sizes."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
torch.set_num_threads(1)

S = 32            # frame size in pixels
ANCHOR = 10.0
STEPS = 420
BATCH = 24


def sample_objects(n):
    wh = torch.randint(5, 14, (n, 2)).float()
    xy1 = (torch.rand(n, 2) * (S - wh)).floor()
    return torch.cat([xy1, xy1 + wh], 1)


def jitter(boxes, amount):
    """random translation of the camera, boxes are clipped to the frame"""
    shift = torch.randint(-amount, amount + 1, (len(boxes), 2)).float()
    moved = boxes + shift.repeat(1, 2)
    return moved.clamp(0, S)


def render(boxes):
    ys = torch.arange(S).view(1, S, 1)
    xs = torch.arange(S).view(1, 1, S)
    x1, y1, x2, y2 = [b.view(-1, 1, 1) for b in boxes.unbind(1)]
    inside = (xs >= x1) & (xs < x2) & (ys >= y1) & (ys < y2)
    img = inside.float() * 0.8 + 0.1 * torch.randn(len(boxes), S, S)
    return img.unsqueeze(1)


def encode(boxes):
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2
    size = boxes[:, 2:] - boxes[:, :2]
    offset = (centre - S / 2) / ANCHOR
    log_size = torch.log(size / ANCHOR)
    return torch.cat([offset, log_size], 1)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(24, 24, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(24 * 16, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.fc(self.features(x))


def main():
    net = Detector()
    opt = torch.optim.Adam(net.parameters(), lr=1.5e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, 250, 0.3)
    avg = None
    for step in range(STEPS):
        # the translation gets stronger during the run
        amount = 1 + step // 30
        boxes = jitter(sample_objects(BATCH), amount)
        images = render(boxes)
        target = encode(boxes)
        pred = net(images)
        loss_xy = F.smooth_l1_loss(pred[:, :2], target[:, :2])
        loss_wh = F.mse_loss(pred[:, 2:], target[:, 2:])
        loss = loss_xy + loss_wh
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        avg = loss.item() if avg is None else 0.9 * avg + 0.1 * loss.item()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} avg {avg:.4f} jitter {amount}")


if __name__ == "__main__":
    main()
