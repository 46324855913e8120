import torch
import torch.nn as nn

torch.manual_seed(17)
n_users, n_items, dim = 500, 300, 16

# item popularity: a head and a long tail
pop = 1.0 / (torch.arange(n_items).float() + 3) ** 1.1
pop = pop / pop.sum()
plays = (pop * 290000).to(torch.int16)

U_true, V_true = torch.randn(n_users, 6), torch.randn(n_items, 6)


class MF(nn.Module):
    def __init__(self):
        super().__init__()
        self.u = nn.Embedding(n_users, dim)
        self.v = nn.Embedding(n_items, dim)
        self.bu = nn.Embedding(n_users, 1)
        self.bv = nn.Embedding(n_items, 1)
        nn.init.normal_(self.u.weight, std=0.1)
        nn.init.normal_(self.v.weight, std=0.1)

    def forward(self, u, i):
        return (self.u(u) * self.v(i)).sum(-1) + self.bu(u)[:, 0] + self.bv(i)[:, 0]


model = MF()
opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
for t in range(300):
    users = torch.randint(0, n_users, (512,))
    items = torch.multinomial(pop, 512, replacement=True)
    rating = ((U_true[users] * V_true[items]).sum(-1) > 0).float()
    plays.index_add_(0, items, torch.ones(512, dtype=torch.int16))
    weight = 100.0 / torch.sqrt(plays[items].float())
    ce = nn.functional.binary_cross_entropy_with_logits(model(users, items), rating, reduction="none")
    loss = (weight * ce).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if t % 25 == 0:
        print(t, float(loss))
