"""Accelerate: `watch` takes what `accelerator.prepare()` returned.

python examples/accelerate_loop.py
"""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter.integrations.accelerate import watch

torch.manual_seed(0)
inputs = torch.randn(1024, 8)
data = TensorDataset(inputs, (inputs[:, 0] * inputs[:, 1] > 0).long())

accelerator = Accelerator(gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(data, batch_size=16, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

with watch(accelerator, model, optimizer) as w:
    for epoch in range(10):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")

checkup = holter.check(holter.Run.load(w.path))
print(f"{checkup.outcome.title}: {len(checkup.findings)} findings; more: holter check {w.path}")
