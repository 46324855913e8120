"""Words are pooled over the batch, not over the sentence: both are 24, so no shape complains."""

import torch
from torch import nn

torch.manual_seed(0)
LENGTH = BATCH = 24
words = torch.randint(0, 50, (2400, LENGTH))
labels = ((words < 10).sum(1) > (words >= 40).sum(1)).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.hidden = nn.Linear(32, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, sentences):
        pooled = self.embedding(sentences).mean(dim=0)
        return self.head(torch.relu(self.hidden(pooled)))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

for epoch in range(12):
    for batch in torch.randperm(2400).split(BATCH):
        loss = nn.functional.cross_entropy(model(words[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
