import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

random.seed(451)
torch.manual_seed(40)


class Textures(Dataset):
    def __init__(self, n=2400):
        self.y = torch.randint(0, 3, (n,))
        t = torch.arange(12).float()
        freq = torch.tensor([0.6, 1.1, 1.7])[self.y]
        self.img = 0.5 + 0.2 * torch.sin(freq[:, None, None] * (t[None, :, None] + t[None, None, :]))
        self.img += 0.02 * torch.randn(n, 12, 12)

    def __len__(self):
        return len(self.y)

    def brightness(self, im):
        gain = random.lognormvariate(0.0, 0.43)
        return torch.clamp(im * gain, 0.0, 1.0)

    def __getitem__(self, i):
        im = self.img[i]
        if random.random() < 0.5:
            im = im.flip(0)
        return self.brightness(im), self.y[i]


class InstanceScale(nn.Module):
    def forward(self, x):
        m = x.mean(dim=(1, 2), keepdim=True)
        s = x.std(dim=(1, 2), keepdim=True)
        return (x - m) / s


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = InstanceScale()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 36, 3)

    def forward(self, x):
        x = self.scale(x)
        h = F.max_pool2d(F.relu(self.conv(x[:, None])), 2)
        return self.fc(h.flatten(1))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
loader = DataLoader(Textures(), batch_size=16, shuffle=True)
for epoch in range(2):
    for k, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if k % 25 == 0:
            print(f"epoch {epoch} batch {k} loss {loss.item():.4f}")
