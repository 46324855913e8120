"""The adding problem with a plain recurrent network and small clipped steps.

SGD with momentum and a clipping norm of 0.1: on purpose nearly every step is clipped,
i.e. we follow the direction of the gradient with steps of fixed length (lr times 0.1)
and anneal that length by the schedule. The share of clipped steps is printed.
"""
import torch
import torch.nn as nn

LENGTH, BATCH, STEPS, LIMIT = 16, 64, 120, 0.1


def adding(n, generator):
    """Two channels: numbers in [0, 1] and two marks. Answer: sum of the marked numbers."""
    numbers = torch.rand(n, LENGTH, generator=generator)
    first = torch.randint(0, LENGTH // 2, (n,), generator=generator)
    second = torch.randint(LENGTH // 2, LENGTH, (n,), generator=generator)
    marks = torch.zeros(n, LENGTH)
    marks[torch.arange(n), first] = 1
    marks[torch.arange(n), second] = 1
    return torch.stack([numbers, marks], 2), (numbers * marks).sum(1)


class IRNN(nn.Module):
    """Rectified recurrence started at the identity (Le, Jaitly and Hinton)."""

    def __init__(self, width=64):
        super().__init__()
        self.rnn = nn.RNN(2, width, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(width, 1)
        nn.init.eye_(self.rnn.weight_hh_l0)
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.05)
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1]).squeeze(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    stream = torch.Generator().manual_seed(1)
    x_val, y_val = adding(2000, torch.Generator().manual_seed(2))
    x_test, y_test = adding(4000, torch.Generator().manual_seed(3))
    print(f"always answering the mean: MSE {y_val.var(unbiased=False):.4f}")
    model = IRNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    epochs = 20
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * STEPS)
    for epoch in range(1, epochs + 1):
        model.train()
        total, clipped, norms = 0.0, 0, 0.0
        for _ in range(STEPS):
            x, y = adding(BATCH, stream)
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), LIMIT).item()
            optimizer.step()
            schedule.step()
            total += loss.item()
            clipped += norm > LIMIT
            norms += norm
        model.eval()
        with torch.no_grad():
            val = ((model(x_val) - y_val) ** 2).mean().item()
        print(f"epoch {epoch:2d} train MSE {total / STEPS:.5f} val MSE {val:.5f} "
              f"mean norm {norms / STEPS:.2f} clipped {clipped / STEPS:.2f}")
    with torch.no_grad():
        print(f"test MSE {((model(x_test) - y_test) ** 2).mean():.5f}")


if __name__ == "__main__":
    main()
