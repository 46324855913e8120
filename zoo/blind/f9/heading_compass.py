import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(17)

STATIONS = 5


def make_days(days=2500):
    wind = (torch.rand(days) * 2 - 1) * 3.1
    reading = wind[:, None] + 0.4 * torch.randn(days, STATIONS)
    present = (torch.rand(days, STATIONS) > 0.25).float()
    weather = torch.randn(days, 6)
    weather[:, 0] = torch.sin(wind)
    weather[:, 1] = torch.cos(wind)
    return reading, present, weather, wind


class Blend(nn.Module):
    def __init__(self):
        super().__init__()
        self.trust = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, STATIONS))
        self.turn = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, STATIONS))

    def forward(self, reading, present, weather):
        weight = F.softplus(self.trust(weather)) * present
        angle = reading + self.turn(weather)
        east = (weight * torch.sin(angle)).sum(1)
        north = (weight * torch.cos(angle)).sum(1)
        arrow = torch.stack([east, north], dim=1)
        return arrow / arrow.norm(dim=1, keepdim=True)


reading, present, weather, wind = make_days()
model = Blend()
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8, nesterov=True)
step = 0
for epoch in range(6):
    order = torch.randperm(len(wind))
    for start in range(0, len(order), 20):
        idx = order[start:start + 20]
        heading = model(reading[idx], present[idx], weather[idx])
        truth = torch.stack([torch.sin(wind[idx]), torch.cos(wind[idx])], dim=1)
        loss = (1 - (heading * truth).sum(1)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.5f}")
        step += 1
