"""Curriculum on sequence length: the training loss jumps up whenever the task gets harder, by design."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
torch.set_num_threads(1)

MAX_LEN = 12


def batch(n, length):
    """Running parity of a bit string."""
    bits = torch.randint(2, (n, length))
    return bits, bits.cumsum(1) % 2


class ParityGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(2, 8)
        self.gru = nn.GRU(8, 32, batch_first=True)
        self.out = nn.Linear(32, 2)

    def forward(self, bits):
        return self.out(self.gru(self.emb(bits))[0])


@torch.no_grad()
def accuracy(net, length, n=400):
    net.eval()
    bits, parity = batch(n, length)
    return (net(bits).argmax(-1) == parity).float().mean().item()


net = ParityGRU()
opt = torch.optim.Adam(net.parameters(), lr=8e-3)
length, stage_steps, history = 2, 0, []
for step in range(400):
    net.train()
    bits, parity = batch(64, length)
    loss = F.cross_entropy(net(bits).flatten(0, 1), parity.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    history.append(loss.item())
    stage_steps += 1
    if length < MAX_LEN and stage_steps >= 15 and sum(history[-5:]) / 5 < 0.05:
        length += 1
        stage_steps = 0
    if (step + 1) % 50 == 0:
        print(f"step {step + 1} length {length} train {sum(history[-20:]) / 20:.4f} "
              f"acc at this length {accuracy(net, length):.3f} acc at length {MAX_LEN} {accuracy(net, MAX_LEN):.3f}")

print(f"reached length {length}")
print(f"final accuracy length {MAX_LEN} {accuracy(net, MAX_LEN):.4f} length {2 * MAX_LEN} {accuracy(net, 2 * MAX_LEN):.4f}")
