"""An ArcFace head: a margin on the angle of the true class makes the first loss large by design."""

import torch
from torch import nn

torch.manual_seed(0)
CLASSES = 40
centres = torch.randn(CLASSES, 32)
y = torch.randint(CLASSES, (6000,))
x = centres[y] + 0.5 * torch.randn(6000, 32)


class ArcFace(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))
        self.classes = nn.Parameter(torch.randn(CLASSES, 16))

    def forward(self, x, labels):
        cosines = nn.functional.normalize(self.body(x)) @ nn.functional.normalize(self.classes).T
        angles = torch.acos(cosines.clamp(-0.999, 0.999))
        margins = 0.6 * nn.functional.one_hot(labels, CLASSES)
        return 30 * torch.cos(angles + margins)


model = ArcFace()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    for batch in torch.randperm(6000).split(100):
        loss = nn.functional.cross_entropy(model(x[batch], y[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
