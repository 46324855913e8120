"""Deep SVDD on short sensor waveforms: autoencoder pretraining, then one-class training."""
import copy

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

LENGTH = 64


def normal_waves(n, rng):
    t = np.arange(LENGTH) / LENGTH
    ph = rng.uniform(0, 2 * np.pi, (n, 1))
    amp = rng.uniform(0.7, 1.3, (n, 1))
    off = rng.normal(0, 0.5, (n, 1))
    w = amp * (np.sin(2 * np.pi * 3 * t + ph) + 0.5 * np.sin(2 * np.pi * 6 * t + 2 * ph))
    return w + off + rng.normal(0, 0.15, (n, LENGTH))


def odd_waves(n, rng):
    w = normal_waves(n, rng)
    t = np.arange(LENGTH) / LENGTH
    for i in range(n):
        k = rng.integers(3)
        if k == 0:
            s = rng.integers(0, LENGTH - 12)
            w[i, s:s + 12] = w[i, s]
        elif k == 1:
            w[i] += 0.45 * np.sin(2 * np.pi * 10 * t + rng.uniform(0, 6))
        else:
            s = rng.integers(8, LENGTH - 8)
            w[i, s:s + 3] += rng.choice([-1.8, 1.8])
    return w


def block(i, o):
    return [nn.Conv1d(i, o, 5, stride=2, padding=2, bias=False), nn.BatchNorm1d(o, affine=False), nn.LeakyReLU(0.1)]


class Encoder(nn.Module):
    def __init__(self, code=16):
        super().__init__()
        self.features = nn.Sequential(*block(1, 8), *block(8, 16), nn.Flatten())
        self.code = nn.Linear(16 * LENGTH // 4, code, bias=False)

    def forward(self, x):
        return self.code(self.features(x))


class AutoEncoder(nn.Module):
    def __init__(self, code=16):
        super().__init__()
        self.encoder = Encoder(code)
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.LeakyReLU(0.1), nn.Linear(96, LENGTH))

    def forward(self, x):
        return self.decoder(self.encoder(x)).unsqueeze(1)


class DeepSVDD:
    def __init__(self, x_train, x_test, y_test, batch=100):
        self.x, self.xt, self.yt, self.batch = x_train, x_test, y_test, batch
        self.net = Encoder()
        self.c = None

    def batches(self):
        order = torch.randperm(len(self.x))
        for i in range(0, len(order), self.batch):
            yield self.x[order[i:i + self.batch]]

    def pretrain(self, epochs):
        ae = AutoEncoder()
        opt = torch.optim.Adam(ae.parameters(), lr=2e-3)
        ae.train()
        for ep in range(epochs):
            tot = 0.0
            for xb in self.batches():
                loss = ((ae(xb) - xb) ** 2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                tot += loss.item() * len(xb)
            if ep % 5 == 4:
                print(f"[ae]   epoch {ep + 1:2d}  reconstruction {tot / len(self.x):.4f}")
        state = {k.removeprefix("encoder."): v for k, v in ae.state_dict().items() if k.startswith("encoder.")}
        self.net.load_state_dict(state)
        self.pretrained = copy.deepcopy(self.net)

    @torch.no_grad()
    def set_centre(self, eps=0.1):
        self.net.eval()
        c = self.net(self.x).mean(0)
        c[(c.abs() < eps) & (c < 0)] = -eps
        c[(c.abs() < eps) & (c >= 0)] = eps
        self.c = c

    @torch.no_grad()
    def auroc(self):
        self.net.eval()
        scores = []
        for i in range(0, len(self.xt), self.batch):
            z = self.net(self.xt[i:i + self.batch])
            scores.append(((z - self.c) ** 2).sum(1))
        return roc_auc_score(self.yt, torch.cat(scores).numpy())

    def fit(self, epochs, lr=2e-3):
        self.set_centre()
        print(f"[svdd] start      AUROC {self.auroc():.4f}")
        opt = torch.optim.Adam(self.net.parameters(), lr=lr, weight_decay=1e-5)
        for ep in range(epochs):
            self.net.train()
            tot = 0.0
            for xb in self.batches():
                z = self.net(xb)
                loss = ((z - self.c) ** 2).sum(1).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                tot += loss.item() * len(xb)
            if ep % 4 == 3:
                print(f"[svdd] epoch {ep + 1:2d}  loss {tot / len(self.x):.4f}  AUROC {self.auroc():.4f}")
        print(f"final one-class loss {tot / len(self.x):.4f}  test AUROC {self.auroc():.4f}")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    pool = np.concatenate([normal_waves(1500, rng), odd_waves(300, rng)])
    y_pool = np.r_[np.zeros(1500), np.ones(300)]
    x_train = pool[y_pool == 0]
    x_test = np.concatenate([normal_waves(600, rng), odd_waves(600, rng)])
    y_test = np.r_[np.zeros(600), np.ones(600)]
    mu, sd = x_train.mean(), x_train.std()
    to = lambda a: torch.tensor((a - mu) / sd, dtype=torch.float32).unsqueeze(1)
    model = DeepSVDD(to(x_train), to(x_test), y_test)
    model.pretrain(15)
    model.fit(16)


main()
