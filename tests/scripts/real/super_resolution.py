"""Sub-pixel super-resolution, tested by PSNR from the mean squared error of each batch."""

import argparse
from math import log10

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Super-resolution example")
parser.add_argument("--upscale_factor", type=int, default=2)
parser.add_argument("--nEpochs", type=int, default=4)
parser.add_argument("--lr", type=float, default=3e-3)
opt = parser.parse_args()
torch.manual_seed(123)


def pictures(count):
    high = F.interpolate(torch.rand(count, 1, 5, 5), size=16, mode="bicubic").clamp(0, 1)
    return TensorDataset(F.avg_pool2d(high, opt.upscale_factor), high)


training_data_loader = DataLoader(pictures(640), batch_size=16, shuffle=True)
testing_data_loader = DataLoader(pictures(100), batch_size=20, shuffle=False)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, 5, 1, 2)
        self.conv2 = nn.Conv2d(16, 16, 3, 1, 1)
        self.conv3 = nn.Conv2d(16, upscale_factor**2, 3, 1, 1)
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        nn.init.orthogonal_(self.conv1.weight, nn.init.calculate_gain("relu"))
        nn.init.orthogonal_(self.conv2.weight, nn.init.calculate_gain("relu"))
        nn.init.orthogonal_(self.conv3.weight)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv3(x))


model = Net(opt.upscale_factor)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=opt.lr)


def train(epoch):
    epoch_loss = 0
    for iteration, batch in enumerate(training_data_loader, 1):
        input, target = batch[0], batch[1]
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
        print(f"===> Epoch[{epoch}]({iteration}/{len(training_data_loader)}): Loss: {loss.item()}")


def test():
    avg_psnr = 0
    avg_mse = 0
    with torch.no_grad():
        for batch in testing_data_loader:
            input, target = batch[0], batch[1]
            prediction = model(input)
            mse = criterion(prediction, target)
            psnr = 10 * log10(1 / mse.item())
            avg_psnr += psnr
            avg_mse += mse.item()
    count = len(testing_data_loader)
    print(f"===> Avg. PSNR: {avg_psnr / count:.4f} dB, MSE: {avg_mse / count}")


def checkpoint(epoch):
    model_out_path = f"model_epoch_{epoch}.pth"
    torch.save(model, model_out_path)
    print(f"Checkpoint saved to {model_out_path}")


for epoch in range(1, opt.nEpochs + 1):
    train(epoch)
    test()
    checkpoint(epoch)
