import torch

torch.manual_seed(10)


def signal(t):
    return 3.0 * torch.exp(-0.8 * t) + 1.5 * torch.exp(-0.1 * t)


class TwoExp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
        self.b = torch.nn.Parameter(torch.tensor([-0.5, -0.2]))

    def forward(self, t):
        a, b = self.a, self.b
        return (a * torch.exp(b * t.unsqueeze(1))).sum(1)


def section(step):
    if step < 60:
        return torch.linspace(0, 5, 60)
    return torch.linspace(0, 60, 240)


def main():
    model = TwoExp()
    opt = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=2, history_size=10)
    for step in range(160):
        t = section(step)
        y = signal(t) + 0.05 * torch.randn_like(t)
        if step >= 60:
            y = y + 0.5 * torch.sin(0.3 * t)

        def closure():
            opt.zero_grad()
            loss = ((model(t) - y) ** 2).sum()
            loss.backward()
            return loss

        loss = opt.step(closure)
        if step % 10 == 0:
            print(f"step {step} sse {float(loss):.5f} rates {model.b.detach().tolist()}")


main()
