"""Deep Cox model on a synthetic cohort."""
import numpy as np
import torch
import torch.nn as nn


def cohort(n=1400, seed=11):
    rng = np.random.default_rng(seed)
    age = rng.normal(62, 11, n)
    bmi = rng.normal(27, 4, n)
    crp = rng.lognormal(1.5, 1.4, n)
    platelets = rng.lognormal(12.4, 0.35, n)
    smoker = rng.integers(0, 2, n)
    stage = rng.integers(0, 4, n)
    risk = (0.9 * (age - 62) / 11 + 0.7 * np.abs(bmi - 27) / 4 + 0.8 * (np.log(crp) - 1.5) / 1.4
            + 0.5 * smoker + 0.6 * stage * (1 + smoker) / 2)
    time_event = rng.exponential(np.exp(-risk + risk.mean())) * 5
    time_censor = rng.uniform(0.5, 14, n)
    duration = np.minimum(time_event, time_censor)
    event = (time_event <= time_censor).astype("float32")
    x = np.stack([age, bmi, np.log(crp), np.log(platelets), smoker, stage], axis=1)
    return x.astype("float32"), duration.astype("float32"), event


class Standardizer:
    def fit(self, x):
        self.m, self.s = x.mean(0), x.std(0)
        return self

    def __call__(self, x):
        return (x - self.m) / self.s


def cox_loss(h, duration, event):
    order = torch.argsort(duration, descending=True)
    h, event = h[order], event[order]
    log_risk = torch.logcumsumexp(h, dim=0)
    return -((h - log_risk) * event).sum() / event.sum()


def concordance(h, duration, event):
    earlier = (duration[:, None] < duration[None, :]) & (event[:, None] == 1)
    better = (h[:, None] > h[None, :]).float() + 0.5 * (h[:, None] == h[None, :]).float()
    return (better * earlier).sum().item() / earlier.sum().item()


def main():
    torch.manual_seed(0)
    x, duration, event = cohort()
    n_tr = 1000
    scale = Standardizer().fit(x[:n_tr])
    xt, xv = torch.from_numpy(scale(x[:n_tr])), torch.from_numpy(scale(x[n_tr:]))
    dt, dv = torch.from_numpy(duration[:n_tr]), torch.from_numpy(duration[n_tr:])
    et, ev = torch.from_numpy(event[:n_tr]), torch.from_numpy(event[n_tr:])
    print(f"train {n_tr} patients, {et.mean():.0%} with event")
    net = nn.Sequential(nn.Linear(x.shape[1], 32), nn.SELU(), nn.Linear(32, 32), nn.SELU(), nn.Linear(32, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=15, gamma=0.5)
    for epoch in range(40):
        net.train()
        perm = torch.randperm(n_tr)
        tot = 0.0
        for i in range(0, n_tr, 125):
            j = perm[i:i + 125]
            opt.zero_grad()
            loss = cox_loss(net(xt[j]).squeeze(1), dt[j], et[j])
            loss.backward()
            opt.step()
            tot += loss.item()
        sched.step()
        if epoch % 5 == 4:
            net.eval()
            with torch.no_grad():
                hv = net(xv).squeeze(1)
            print(f"epoch {epoch + 1} partial likelihood {tot / 8:.4f} val {cox_loss(hv, dv, ev):.4f} c-index {concordance(hv, dv, ev):.3f}")


main()
