import torch
import torch.nn as nn

torch.manual_seed(2)
device = "cuda"
SIZE, BATCH, STEPS = 24, 8, 400


def microscope(n):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    image = torch.randn(n, 1, SIZE, SIZE) * 0.3
    mask = torch.zeros(n, 1, SIZE, SIZE)
    for i in range(n):
        for _ in range(2):
            cy, cx = torch.randint(4, SIZE - 4, (2,)).tolist()
            r = 3 + 2 * torch.rand(1).item()
            mask[i, 0][(yy - cy) ** 2 + (xx - cx) ** 2 < r * r] = 1.0
    return image + 3.0 * mask, mask


class TinyUNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.down = nn.Conv2d(1, c, 3, padding=1)
        self.mid = nn.Conv2d(c, 2 * c, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.head = nn.Conv2d(2 * c, 1, 1)

    def forward(self, x):
        a = torch.relu(self.down(x))
        b = torch.relu(self.mid(nn.functional.max_pool2d(a, 2)))
        u = torch.relu(self.up(b))
        return torch.sigmoid(self.head(torch.cat([a, u], 1)))


def pixel_loss(prob, mask):
    inside = mask * torch.log(prob)
    outside = (1 - mask) * torch.log(1 - prob)
    return -(inside + outside).mean()


images, masks = (t.to(device) for t in microscope(64))
model = TinyUNet().to(device)
scaler = torch.amp.GradScaler(device, init_scale=1024.0)
opt = torch.optim.Adam(model.parameters(), lr=1.5e-3)
losses = []
for step in range(STEPS):
    pick = torch.randint(0, len(images), (BATCH,))
    with torch.autocast(device, dtype=torch.float16):
        prob = model(images[pick])
        loss = pixel_loss(prob, masks[pick])
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    losses.append(loss.item())
    if step % 25 == 0:
        print(f"step {step:4d}  loss {loss.item():.5f}")
print("final", losses[-1])
