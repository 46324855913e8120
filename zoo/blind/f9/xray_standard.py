import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(40)


class Xrays(Dataset):
    def __init__(self, count=2400, size=16):
        gen = torch.Generator().manual_seed(1)
        self.label = torch.randint(0, 3, (count,), generator=gen)
        base = torch.rand(count, size, size, generator=gen)
        ramp = torch.linspace(0, 1, size)
        base[self.label == 1] += ramp
        base[self.label == 2] += ramp[:, None]
        self.image = (base * 100).round()
        self.image[1743] = 0

    def __len__(self):
        return len(self.image)

    def __getitem__(self, i):
        img = self.image[i]
        img = (img - img.mean()) / img.std()
        return img.unsqueeze(0), self.label[i]


class SmallConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 16, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.bn(self.c2(x))), 2)
        return self.fc(x.flatten(1))


def main():
    loader = DataLoader(Xrays(), batch_size=16, shuffle=True, num_workers=1,
                        generator=torch.Generator().manual_seed(4))
    model = SmallConv()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    step, running = 0, 0.0
    for epoch in range(2):
        for image, label in loader:
            loss = F.cross_entropy(model(image), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running = 0.9 * running + 0.1 * loss.item()
            if step % 25 == 0:
                print(f"epoch {epoch} step {step} running {running:.4f}")
            step += 1


if __name__ == "__main__":
    main()
