"""A learner with callbacks, as taught in courses: it keeps the batch and the loss in itself."""

from operator import attrgetter

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class CancelBatchException(Exception):
    pass


class Callback:
    order = 0


def run_cbs(cbs, method_nm, learn=None):
    for cb in sorted(cbs, key=attrgetter("order")):
        method = getattr(cb, method_nm, None)
        if method is not None:
            method(learn)


class DataLoaders:
    def __init__(self, train, valid):
        self.train, self.valid = train, valid


class TrainCB(Callback):
    def predict(self, learn):
        learn.preds = learn.model(learn.batch[0])

    def get_loss(self, learn):
        learn.loss = learn.loss_func(learn.preds, learn.batch[1])

    def backward(self, learn):
        learn.loss.backward()

    def step(self, learn):
        learn.opt.step()

    def zero_grad(self, learn):
        learn.opt.zero_grad()


class LossCB(Callback):
    order = 1

    def before_epoch(self, learn):
        self.losses = []

    def after_batch(self, learn):
        self.losses.append(learn.loss.item())

    def after_epoch(self, learn):
        print(
            learn.epoch, "train" if learn.training else "valid", sum(self.losses) / len(self.losses)
        )


class Learner:
    def __init__(self, model, dls, loss_func, lr=0.1, cbs=None, opt_func=optim.SGD):
        self.model, self.dls, self.loss_func, self.lr = model, dls, loss_func, lr
        self.cbs, self.opt_func = cbs or [], opt_func

    def __getattr__(self, name):
        if name in ("predict", "get_loss", "backward", "step", "zero_grad"):
            return lambda: run_cbs(self.cbs, name, self)
        raise AttributeError(name)

    def one_batch(self):
        self.predict()
        self.get_loss()
        if self.training:
            self.backward()
            self.step()
            self.zero_grad()

    def one_epoch(self, training):
        self.training = training
        self.model.train(training)
        self.dl = self.dls.train if training else self.dls.valid
        run_cbs(self.cbs, "before_epoch", self)
        for self.iter, self.batch in enumerate(self.dl):
            self.one_batch()
            run_cbs(self.cbs, "after_batch", self)
        run_cbs(self.cbs, "after_epoch", self)

    def fit(self, n_epochs):
        self.opt = self.opt_func(self.model.parameters(), self.lr)
        for self.epoch in range(n_epochs):
            self.one_epoch(True)
            with torch.no_grad():
                self.one_epoch(False)


torch.manual_seed(0)
x = torch.randn(640, 8)
y = x[:, :3].argmax(1)
dls = DataLoaders(
    DataLoader(TensorDataset(x[:512], y[:512]), 32, shuffle=True),
    DataLoader(TensorDataset(x[512:], y[512:]), 64),
)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
Learner(model, dls, F.cross_entropy, lr=0.2, cbs=[TrainCB(), LossCB()]).fit(3)
