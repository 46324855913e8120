import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(6)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.elu(self.conv1(x))
        x = F.max_pool2d(F.elu(self.conv2(x)), 2)
        x = F.elu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def warmup(step, warm=60):
    return (step + 1) / warm


def main():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target)
    loader = DataLoader(TensorDataset(images[:1500], labels[:1500]), batch_size=25, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup)
    step = 0
    for epoch in range(14):
        model.train()
        for image, label in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
            scheduler.step()
            if step % 30 == 0:
                print(f"step {step} loss {loss.item():.4f}")
            step += 1
        model.eval()
        with torch.no_grad():
            hit = (model(images[1500:]).argmax(1) == labels[1500:]).float().mean()
        print(f"epoch {epoch} test accuracy {hit.item():.3f}")


if __name__ == "__main__":
    main()
