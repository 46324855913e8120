"""Sequence tagging with a temporal conv net, SGD and cosine cycles."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(88)
torch.cuda.manual_seed_all(88)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False

CH, LEN, TAGS, BATCH = 8, 128, 6, 128
CYCLE, STEPS = 90, 450
CYCLE_PEAKS = [0.02, 0.04, 0.08, 4.0, 0.16]


def make_batch():
    x = torch.randn(BATCH, CH, LEN).cuda()
    smooth = F.avg_pool1d(x, 5, stride=1, padding=2)
    score = torch.stack([smooth[:, i] + 0.5 * smooth[:, (i + 1) % CH] for i in range(TAGS)], 1)
    return x, score.argmax(1)


class TCN(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.inp = nn.Conv1d(CH, width, 5, padding=2)
        self.mid = nn.ModuleList(nn.Conv1d(width, width, 3, padding=d, dilation=d) for d in (1, 2))
        self.out = nn.Conv1d(width, TAGS, 1)

    def forward(self, x):
        h = F.relu(self.inp(x))
        for conv in self.mid:
            h = h + F.relu(conv(h))
        return self.out(h)


def learning_rate(step):
    cycle, k = divmod(step, CYCLE)
    peak = CYCLE_PEAKS[cycle]
    return 0.5 * peak * (1 + math.cos(math.pi * k / CYCLE))


def accuracy(net):
    with torch.no_grad():
        x, y = make_batch()
        return (net(x).argmax(1) == y).float().mean().item()


def main():
    net = TCN().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    for step in range(STEPS):
        lr = learning_rate(step)
        for g in opt.param_groups:
            g["lr"] = lr
        x, y = make_batch()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = net(x)
        loss = F.cross_entropy(logits.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step} lr {lr:.4f} loss {loss.item():.4f}")
        if step % CYCLE == CYCLE - 1:
            print(f"== end of cycle {step // CYCLE}: accuracy {accuracy(net):.3f}")


if __name__ == "__main__":
    main()
