import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(5)
S = 6
device = "cuda" if torch.cuda.is_available() else "cpu"


def scene(n, gen):
    """n images 24x24 with up to 2 squares, grid targets S x S"""
    img = 0.1 * torch.randn(n, 1, 24, 24, generator=gen)
    obj = torch.zeros(n, S, S)
    box = torch.zeros(n, 4, S, S)
    for i in range(n):
        k = int(torch.rand(1, generator=gen) < 0.5)
        for _ in range(k):
            w = torch.randint(3, 8, (2,), generator=gen)
            c = torch.randint(4, 20, (2,), generator=gen)
            x0, y0 = (c - w // 2).tolist()
            img[i, 0, y0:y0 + int(w[1]), x0:x0 + int(w[0])] += 1
            gx, gy = int(c[0]) // 4, int(c[1]) // 4
            obj[i, gy, gx] = 1
            box[i, :, gy, gx] = torch.tensor([(c[0] % 4) / 4, (c[1] % 4) / 4, w[0] / 8, w[1] / 8])
    return img, obj, box


class Detector(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, c, 3, 2, 1), nn.ReLU(), nn.Conv2d(c, c, 3, 2, 1), nn.ReLU(), nn.Conv2d(c, c, 3, 1, 1), nn.ReLU())
        self.obj = nn.Conv2d(c, 1, 1)
        self.box = nn.Conv2d(c, 4, 1)

    def forward(self, x):
        f = self.backbone(x)
        return self.obj(f).squeeze(1), self.box(f)


def detection_loss(obj_logit, box_pred, obj, box):
    cls = F.binary_cross_entropy_with_logits(obj_logit, obj, pos_weight=torch.tensor(8.0, device=obj.device))
    pos = obj[:, None]
    reg = F.smooth_l1_loss(box_pred * pos, box * pos, reduction="sum") / obj.sum()
    return cls, reg


def train(steps=220, bs=6):
    gen = torch.Generator().manual_seed(8)
    net = Detector().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        img, obj, box = (t.to(device) for t in scene(bs, gen))
        cls, reg = detection_loss(*net(img), obj, box)
        loss = cls + reg
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 20 == 0:
            print(f"{step + 1:4d} cls {cls.item():.4f} reg {reg.item():.4f}")


train()
