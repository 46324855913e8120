"""On a GPU the loop reads the loss, the accuracy and the norm of every step."""

import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda")
truth = torch.randn(256, 8, device=device)


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what the layer finds."""
        return x + nn.functional.relu(self.layer(x)) / 4


model = nn.Sequential(*(Block() for _ in range(24)), nn.Linear(256, 8)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

seen = correct = norm = 0.0
for step in range(400):
    inputs = torch.randn(8192, 256, device=device)
    targets = (inputs @ truth).argmax(1)
    optimizer.zero_grad()
    logits = model(inputs)
    loss = nn.functional.cross_entropy(logits, targets)
    loss.backward()
    optimizer.step()
    seen += loss.item()
    correct += (logits.argmax(1) == targets).float().mean().item()
    norm += sum(parameter.grad.norm().item() for parameter in model.parameters())
    if step % 100 == 99:
        print(f"step {step}: loss {seen / step:.4f} accuracy {correct / step:.3f}")
