import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.set_num_threads(1)
torch.manual_seed(204)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.fc1 = nn.Linear(16 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def main():
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    y = torch.tensor(digits.target)
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 22, growth_interval=60)
    step = 0
    for epoch in range(8):
        for idx in torch.randperm(len(x)).split(36):
            opt.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(x[idx])
                loss = F.cross_entropy(logits.float(), y[idx])
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.4f} scale {scaler.get_scale():.0f}")
            step += 1
    with torch.no_grad():
        print("accuracy", (model(x).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
