import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
H = W = 24
N_CLASS = 3


def make_scene(g):
    """Background, one big blob (1) and one or two thin bars (2), with a smooth illumination gradient."""
    yy, xx = torch.meshgrid(torch.arange(H).float(), torch.arange(W).float(), indexing="ij")
    r = lambda lo, hi: (lo + (hi - lo) * torch.rand(1, generator=g)).item()
    mask = torch.zeros(H, W, dtype=torch.long)
    cy, cx, ry, rx = r(5, 19), r(5, 19), r(3, 6), r(3, 6)
    mask[((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1] = 1
    for _ in range(2):
        y0, x0, ln = int(r(0, H - 2)), int(r(0, W - 9)), int(r(6, 10))
        if r(0, 1) < 0.5:
            mask[y0:y0 + 2, x0:x0 + ln] = 2
        else:
            mask[x0:x0 + ln, y0:y0 + 2] = 2
    img = torch.stack([(mask == 1).float() + 0.8 * (mask == 2).float(), (mask > 0).float() * 0.6])
    img = img + 0.5 * (r(-1, 1) * yy / H + r(-1, 1) * xx / W) + 0.3 * torch.randn(2, H, W, generator=g)
    return 2.0 + 3.0 * img, mask


class ConvBlock(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
        )


class TinyUNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.enc1 = ConvBlock(2, width)
        self.enc2 = ConvBlock(width, 2 * width)
        self.bottleneck = ConvBlock(2 * width, 3 * width)
        self.dec2 = ConvBlock(5 * width, 2 * width)
        self.dec1 = ConvBlock(3 * width, width)
        self.out = nn.Conv2d(width, N_CLASS, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        b = self.bottleneck(F.max_pool2d(e2, 2))
        u2 = F.interpolate(b, scale_factor=2, mode="nearest")
        d2 = self.dec2(torch.cat([u2, e2], dim=1))
        u1 = F.interpolate(d2, scale_factor=2, mode="nearest")
        d1 = self.dec1(torch.cat([u1, e1], dim=1))
        return self.out(d1)


def dice_score(logits, mask):
    p = F.softmax(logits, dim=1)
    t = F.one_hot(mask, N_CLASS).permute(0, 3, 1, 2).float()
    inter = (p * t).sum(dim=(0, 2, 3))
    return ((2 * inter + 1) / (p.sum(dim=(0, 2, 3)) + t.sum(dim=(0, 2, 3)) + 1)).mean()


def criterion(logits, mask):
    return F.cross_entropy(logits, mask) + (1.0 - dice_score(logits, mask))


def random_flip(img, mask):
    if torch.rand(1) < 0.5:
        img, mask = img.flip(-1), mask.flip(-1)
    if torch.rand(1) < 0.5:
        img, mask = img.flip(-2), mask.flip(-2)
    return img, mask


@torch.no_grad()
def mean_iou(model, imgs, masks):
    model.eval()
    pred = model(imgs).argmax(1)
    ious = []
    for c in range(N_CLASS):
        p, t = pred == c, masks == c
        ious.append(((p & t).sum() / (p | t).sum().clamp(min=1)).item())
    return sum(ious) / N_CLASS, ious


def stack(n, seed):
    g = torch.Generator().manual_seed(seed)
    imgs, masks = zip(*(make_scene(g) for _ in range(n)))
    return torch.stack(imgs), torch.stack(masks)


train_x, train_y = stack(150, 1)
val_x, val_y = stack(48, 2)
net = TinyUNet()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for epoch in range(1, 8):
    net.train()
    losses = []
    for idx in torch.randperm(len(train_x)).split(8):
        pairs = [random_flip(train_x[i], train_y[i]) for i in idx]
        x = torch.stack([p[0] for p in pairs])
        y = torch.stack([p[1] for p in pairs])
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    miou, per_class = mean_iou(net, val_x, val_y)
    print("epoch %d train loss %.4f val mIoU %.4f (%s)" % (
        epoch, sum(losses) / len(losses), miou, " ".join("%.3f" % v for v in per_class)))
