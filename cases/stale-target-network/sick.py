"""Q-learning whose target network is synchronised less often than the run is long."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
SIZE = 8  # places in a row; the reward is at the right end
states = torch.randint(0, SIZE - 1, (4096,))
actions = torch.randint(0, 2, (4096,))
following = (states + 2 * actions - 1).clamp(min=0)
ends = following == SIZE - 1

model = nn.Sequential(nn.Linear(SIZE, 64), nn.ReLU(), nn.Linear(64, 2))
target_model = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def coded(places: torch.Tensor) -> torch.Tensor:
    return nn.functional.one_hot(places, SIZE).float()


for step in range(600):
    batch = torch.randint(0, len(states), (64,))
    values = model(coded(states[batch])).gather(1, actions[batch, None]).squeeze(1)
    with torch.no_grad():
        next_values = target_model(coded(following[batch])).max(dim=1).values
        targets = ends[batch].float() + 0.9 * ~ends[batch] * next_values
    loss = nn.functional.smooth_l1_loss(values, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 1000 == 999:
        target_model.load_state_dict(model.state_dict())
