"""Each answer counts alike: the losses of four batches are summed and divided by their number."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
chain = (2 * torch.randn(24, 24)).softmax(1)
tokens = [torch.randint(24, (1024,))]
for _ in range(20):
    tokens.append(torch.multinomial(chain[tokens[-1]], 1).squeeze(1))
text = torch.stack(tokens, 1)
inputs, answers = text[:, :-1], text[:, 1:].clone()
lengths = torch.where(torch.rand(1024, 1) < 0.15, 20, 2)
answers[torch.arange(20) < 20 - lengths] = -100
loader = DataLoader(TensorDataset(inputs, answers), batch_size=8, shuffle=True)
accumulate = 4


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(24, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, 24)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))
        return self.head(states)


model = LanguageModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(3):
    batches = []
    for batch in loader:
        batches.append(batch)
        if len(batches) == accumulate:
            count = sum((targets != -100).sum() for _, targets in batches)
            for tokens, targets in batches:
                logits = model(tokens).flatten(0, 1)
                loss = nn.functional.cross_entropy(logits, targets.flatten(), reduction="sum")
                (loss / count).backward()
            optimizer.step()
            optimizer.zero_grad()
            batches = []
    print(f"epoch {epoch}: loss {loss.item() / count.item():.4f}")
