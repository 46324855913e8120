"""Input lengths are divided by 4: the encoder halves the frames twice."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
LABELS, FRAMES, SIZE = 6, 96, 32


def batch():
    """Frames in which each label holds for 16 of them, with noise."""
    targets = torch.randint(1, LABELS, (SIZE, FRAMES // 16))
    frames = functional.one_hot(targets.repeat_interleave(16, dim=1), LABELS).float()
    return frames + 0.3 * torch.randn_like(frames), targets


class Encoder(nn.Module):
    """Two convolutions that halve the frames, and a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(LABELS, 32, 4, stride=2, padding=1)
        self.second = nn.Conv1d(32, 32, 4, stride=2, padding=1)
        self.recurrent = nn.GRU(32, 32)
        self.head = nn.Linear(32, LABELS)

    def forward(self, frames):
        hidden = self.second(self.first(frames.transpose(1, 2)).relu()).relu()
        return self.head(self.recurrent(hidden.permute(2, 0, 1))[0]).log_softmax(2)


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for step in range(300):
    frames, targets = batch()
    lengths = torch.full((SIZE,), FRAMES // 4)
    loss = functional.ctc_loss(
        model(frames), targets, lengths, torch.full((SIZE,), FRAMES // 16), zero_infinity=True
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
