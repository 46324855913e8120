import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def textures(n):
    f = torch.randint(1, 5, (n,))
    ph = torch.rand(n, 1, 1) * 6.28
    grid = torch.arange(16.).view(1, 1, 16)
    img = torch.sin(grid * f.view(n, 1, 1) * 0.5 + ph).expand(n, 16, 16) + 0.6 * torch.randn(n, 16, 16)
    return img.unsqueeze(1), f - 1


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 3)
        self.conv2 = nn.Conv2d(10, 16, 3, stride=2)
        self.fc1 = nn.Linear(16 * 36, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


if __name__ == "__main__":
    torch.manual_seed(5)
    x, y = textures(2560)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = SmallCNN()
    opt = torch.optim.SGD(model.parameters(), lr=4e-3, momentum=0.9)
    warm = 150     # ramp the rate up to 1.5x over the first steps
    sched = torch.optim.lr_scheduler.MultiplicativeLR(opt, lambda s: 1.0 + 0.5 * min(s, warm) / warm)
    step = 0
    for epoch in range(2):
        for xb, yb in loader:
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            if step % 8 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
            step += 1
