import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(2)


class Cohort(Dataset):
    def __init__(self, patients=2400, covariates=12):
        self.x = torch.randn(patients, covariates)
        risk = self.x[:, :4].sum(1) * 0.5
        life = torch.distributions.Exponential(torch.exp(risk) * 0.05).sample()
        leave = torch.rand(patients) * 3.0
        self.time = torch.minimum(life, leave)
        self.event = (life <= leave).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.time[i], self.event[i]


def partial_likelihood(score, time, event):
    order = torch.argsort(time, descending=True)
    score, event = score[order], event[order]
    at_risk = torch.logcumsumexp(score, dim=0)
    return -((score - at_risk) * event).sum() / event.sum()


def concordance(score, time, event):
    earlier = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    right = (score[:, None] > score[None, :]) & earlier
    return right.sum().item() / earlier.sum().item()


cohort = Cohort()
loader = DataLoader(cohort, batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(12, 32), nn.SELU(), nn.Dropout(0.1), nn.Linear(32, 1))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(opt, 3, gamma=0.7)

step = 0
for epoch in range(8):
    model.train()
    for x, time, event in loader:
        score = model(x).squeeze(1)
        loss = partial_likelihood(score, time, event)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        step += 1
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print("epoch", epoch, "c-index",
              round(concordance(model(cohort.x).squeeze(1), cohort.time, cohort.event), 4))
