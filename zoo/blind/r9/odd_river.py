"""Click model on a stream: every event is seen once, in order of arrival, prediction before update. The audience changes
twice during the stream."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(23)

EVENTS, BATCH, D = 160_000, 32, 24
ads = torch.randn(60, 8)


class Audience:
    def __init__(self):
        self.w = torch.randn(8, D) * 0.55
        self.bias = -0.9

    def events(self, n):
        user = torch.randn(n, D)
        ad = torch.randint(0, 60, (n,))
        score = (ads[ad] @ self.w * user).sum(1) + self.bias
        return user, ad, (torch.rand(n) < torch.sigmoid(score * 1.2)).float()


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        self.ad = nn.Embedding(60, D)
        self.bias = nn.Embedding(60, 1)
        nn.init.normal_(self.ad.weight, std=0.05)
        nn.init.zeros_(self.bias.weight)

    def forward(self, user, ad):
        return (self.ad(ad) * user).sum(1) + self.bias(ad).squeeze(1)


model = Clicks()
opt = torch.optim.Adagrad(model.parameters(), lr=0.15)
bce = nn.BCEWithLogitsLoss()
audiences = [Audience() for _ in range(3)]
loss_sum = hit_sum = base_sum = 0.0
seen = 0
clicks = 0.3
for k in range(EVENTS // BATCH):
    user, ad, y = audiences[k * BATCH * 3 // EVENTS].events(BATCH)
    logit = model(user, ad)
    loss = bce(logit, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    loss_sum += loss.item()
    hit_sum += ((logit > 0) == (y > 0.5)).float().mean().item()
    base_sum += bce(torch.full_like(y, clicks).logit(), y).item()
    clicks = 0.999 * clicks + 0.001 * y.mean().item()
    seen += 1
    if seen == 250:
        print(f"events {(k + 1) * BATCH:6d}  progressive log-loss {loss_sum / seen:.4f} "
              f"(constant rate {base_sum / seen:.4f})  accuracy {hit_sum / seen:.3f}")
        loss_sum = hit_sum = base_sum = 0.0
        seen = 0
