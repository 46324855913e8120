"""The same language model with targets that are shifted once, in the loop."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
chain = (2 * torch.randn(24, 24)).softmax(1)
tokens = [torch.randint(24, (1024,))]
for _ in range(17):
    tokens.append(torch.multinomial(chain[tokens[-1]], 1).squeeze(1))
text = torch.stack(tokens, 1)
loader = DataLoader(TensorDataset(text[:, :17]), batch_size=32, shuffle=True)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(24, 32)
        self.rnn = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Linear(48, 24)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


model = LanguageModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(5):
    for (batch,) in loader:
        inputs, targets = batch[:, :-1], batch[:, 1:]
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.reshape(-1, 24), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
