"""Predict parcel weight from order features; shards arrive one after another."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
torch.set_num_threads(1)

N_SHARDS, ROWS, BATCH = 14, 2048, 64
N_NUM, N_CAT = 10, 30


class ShardStore:
    """Simulates the export directory: one table per week."""

    def __init__(self):
        g = torch.Generator().manual_seed(40)
        self.g = g
        self.w = torch.randn(N_NUM, generator=g) * 0.3
        self.cat_effect = torch.randn(N_CAT, generator=g) * 0.5

    def load(self, week):
        num = torch.randn(ROWS, N_NUM, generator=self.g)
        cat = torch.randint(0, N_CAT, (ROWS,), generator=self.g)
        kg = 2.0 + num @ self.w + self.cat_effect[cat] + 0.4 * (num[:, 0] * num[:, 1])
        kg = kg + 0.1 * torch.randn(ROWS, generator=self.g)
        # the warehouse software was updated before week 7
        weight = kg if week < 7 else kg * 1000.0
        return {"num": num, "cat": cat, "weight": weight}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(N_CAT, 8)
        self.body = nn.Sequential(
            nn.Linear(N_NUM + 8, 128), nn.ReLU(),
            nn.Linear(128, 128), nn.ReLU(),
            nn.Linear(128, 1),
        )

    def forward(self, num, cat):
        return self.body(torch.cat([num, self.emb(cat)], 1)).squeeze(1)


def main():
    store = ShardStore()
    model = Net()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    for week in range(N_SHARDS):
        shard = store.load(week)
        order = torch.randperm(ROWS)
        total = 0.0
        for s in range(0, ROWS, BATCH):
            rows = order[s:s + BATCH]
            pred = model(shard["num"][rows], shard["cat"][rows])
            loss = F.mse_loss(pred, shard["weight"][rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            if step % 16 == 0:
                print(f"week {week} step {step} loss {loss.item():.4f}")
            step += 1
        print(f"== week {week}: mean loss {total / (ROWS // BATCH):.4f}")


if __name__ == "__main__":
    main()
