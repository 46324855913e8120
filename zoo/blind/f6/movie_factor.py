import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(10)
USERS, ITEMS, DIM, BATCH, STEPS = 200, 120, 12, 512, 340

gen = torch.Generator().manual_seed(7)
taste_u = torch.randn(USERS, 4, generator=gen)
taste_i = torch.randn(ITEMS, 4, generator=gen)
popularity = 1.0 / torch.arange(1, ITEMS + 1).float() ** 1.1


def stream_batch():
    user = torch.randint(0, USERS, (BATCH,), generator=gen)
    item = torch.multinomial(popularity, BATCH, replacement=True, generator=gen)
    affinity = (taste_u[user] * taste_i[item]).sum(1)
    rating = 3.0 + 0.5 * affinity + 0.2 * torch.randn(BATCH, generator=gen)
    return user, item, rating


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(USERS, DIM)
        self.item = nn.Embedding(ITEMS, DIM)
        self.user_bias = nn.Embedding(USERS, 1)
        self.popular = nn.Linear(1, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        self.register_buffer("plays", torch.zeros(ITEMS, dtype=torch.int16))

    def forward(self, user, item):
        seen = torch.log1p(self.plays[item].float())[:, None]
        dot = (self.user(user) * self.item(item)).sum(1)
        return dot + self.user_bias(user)[:, 0] + self.popular(seen / 10)[:, 0]

    @torch.no_grad()
    def count(self, item):
        self.plays += torch.bincount(item, minlength=ITEMS).to(torch.int16)


model = Factors()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for step in range(STEPS):
    user, item, rating = stream_batch()
    loss = F.mse_loss(model(user, item), rating)
    opt.zero_grad()
    loss.backward()
    opt.step()
    model.count(item)
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("final", losses[-1])
