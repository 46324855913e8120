import math
import random
import torch
from torch import nn
from torch.utils.data import IterableDataset, DataLoader


class SensorStream(IterableDataset):
    """yields (window of 10 readings x 3 channels, next reading of channel 0)"""

    def __init__(self, n, seed=0):
        self.n = n
        self.seed = seed

    def __iter__(self):
        rnd = random.Random(self.seed)
        phase = 0.0
        for i in range(self.n):
            phase += rnd.uniform(0.05, 0.3)
            w = [[math.sin(phase + 0.3 * t), math.cos(phase + 0.3 * t), rnd.gauss(0, 0.1)] for t in range(10)]
            target = math.sin(phase + 3.0)
            raw = "nan" if i == 3021 else repr(w[4][2])
            w[4][2] = float(raw)
            yield torch.tensor(w), torch.tensor([target])


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.out(h[-1])


torch.manual_seed(19)
model = Forecaster()
optim = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.HuberLoss()
hist = []
for step, (x, y) in enumerate(DataLoader(SensorStream(5000), batch_size=25)):
    loss = loss_fn(model(x), y)
    optim.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optim.step()
    hist.append(loss.item())
    if step % 20 == 19:
        print(f"step {step + 1}: mean huber {sum(hist[-20:]) / 20:.5f}")
