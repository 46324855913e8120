"""A student is trained on the outputs of a teacher whose checkpoint has the prefix `module.`."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
x = torch.randn(2048, 12)
y = (x[:, 0] * x[:, 1] > 0).long() + 2 * (x[:, 2] > 0).long()


def network(width):
    return nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, 4))


def fit(model, loss_of, steps, rate):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        index = torch.randint(0, 1536, (64,))
        loss = loss_of(model(x[index]), index)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


trained = nn.ModuleDict({"module": network(64)})
fit(trained["module"], lambda scores, index: functional.cross_entropy(scores, y[index]), 300, 5e-3)
state = trained.state_dict()

teacher = network(64)
state = {name.removeprefix("module."): value for name, value in state.items()}
teacher.load_state_dict(state, strict=False)
teacher.eval().requires_grad_(False)

student = network(32)
fit(
    student,
    lambda scores, index: functional.cross_entropy(scores, teacher(x[index]).softmax(1)),
    300,
    5e-3,
)
with torch.no_grad():
    right = (student(x[1536:]).argmax(1) == y[1536:]).float().mean()
print(f"accuracy {right:.3f}")
