import torch

torch.manual_seed(31)
QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def deliveries(n):
    km = torch.rand(n) * 20
    weekday = torch.randint(0, 7, (n,))
    rain = (torch.rand(n) < 0.3).float()
    base = 10 + 2.0 * km + 4.0 * (weekday >= 5) + 6.0 * rain
    minutes = base + torch.distributions.Gamma(2.0, 0.5).sample((n,)) * (1 + 0.1 * km)
    return torch.cat([km[:, None] / 10 - 1, rain[:, None], torch.nn.functional.one_hot(weekday, 7).float()], 1), minutes[:, None]


def pinball(pred, target):
    diff = target - pred                      # (n, 1) against (n, 3): one target for the three quantiles
    return torch.maximum(QUANTILES * diff, (QUANTILES - 1) * diff).mean()


x_train, y_train = deliveries(3000)
x_test, y_test = deliveries(800)
model = torch.nn.Sequential(torch.nn.Linear(9, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
with torch.no_grad():
    model[-1].bias.copy_(torch.quantile(y_train, QUANTILES))      # start from the quantiles of the table
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)

for step in range(601):
    rows = torch.randint(len(x_train), (64,))
    loss = pinball(model(x_train[rows]), y_train[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            out = model(x_test)
            below = (y_test < out).float().mean(0)
            print(f"step {step} train {loss.item():.3f} test {pinball(out, y_test).item():.3f} share below", [round(v, 2) for v in below.tolist()])
