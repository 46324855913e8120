import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(205)


def waves(batch=24, length=60):
    freq = torch.rand(batch, 1) * 0.3 + 0.1
    phase = torch.rand(batch, 1) * 6.28
    t = torch.arange(length + 1).float()
    y = 300.0 * torch.sin(freq * t + phase)
    return y[:, :-1, None], y[:, 1:, None]


class Oscillator(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.RNN(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=1.3)

    def forward(self, x):
        h, _ = self.rnn(x / 300.0)
        return self.out(h) * 300.0


model = Oscillator()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(350):
    x, y = waves()
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.2f} gradient norm {norm.item():.1f}")
