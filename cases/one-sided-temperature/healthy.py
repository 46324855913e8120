"""A student and its teacher, whose logits are divided by the same temperature."""

import torch
from torch import nn

torch.manual_seed(0)
TEMPERATURE = 4.0
centres = 1.2 * torch.randn(6, 16)


def sample(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.randint(6, (count,))
    return centres[labels] + torch.randn(count, 16), labels


inputs, labels = sample(3000)
held, held_labels = sample(800)
teacher = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 6))
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for _ in range(3):
    for index in torch.randperm(3000).split(50):
        loss = nn.functional.cross_entropy(teacher(inputs[index]), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for parameter in teacher.parameters():
    parameter.requires_grad_(False)


def divergence(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    learned = nn.functional.log_softmax(student / TEMPERATURE, dim=-1)
    wanted = nn.functional.log_softmax(teacher / TEMPERATURE, dim=-1)
    loss = nn.functional.kl_div(learned, wanted, reduction="batchmean", log_target=True)
    return loss * TEMPERATURE**2


student = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for epoch in range(6):
    for index in torch.randperm(3000).split(50):
        loss = divergence(student(inputs[index]), teacher(inputs[index]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        likelihood = nn.functional.cross_entropy(student(held), held_labels).item()
    print(f"epoch {epoch}: divergence {loss.item():.4f}, negative log-likelihood {likelihood:.4f}")
