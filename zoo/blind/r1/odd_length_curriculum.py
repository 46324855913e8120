# Parity-of-ones style tagging with sequences that become longer and longer: the loss goes up
# at each stage change and is worked down again.
import torch
import torch.nn as nn

torch.manual_seed(4)


def batch(length, n=64):
    x = torch.randint(0, 2, (n, length))
    y = x.cumsum(1) % 2
    return x, y


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(2, 8)
        self.gru = nn.GRU(8, 24, batch_first=True)
        self.out = nn.Linear(24, 2)

    def forward(self, x):
        return self.out(self.gru(self.emb(x))[0])


net = Rnn()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
lossf = nn.CrossEntropyLoss()
step = 0
for length, steps in [(2, 80), (4, 80), (8, 100), (16, 120)]:
    for _ in range(steps):
        x, y = batch(length)
        loss = lossf(net(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 40 == 0:
            print(f"step {step} length {length} loss {loss.item():.4f}")
x, y = batch(20, 200)
print("accuracy at length 20:", (net(x).argmax(-1) == y).float().mean().item())
