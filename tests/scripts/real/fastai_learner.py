"""A Learner with callbacks, an optimizer of its own, parameter groups and a one-cycle schedule."""

import math
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULT = os.environ.get("FAULT", "")
torch.manual_seed(5)


class Optimizer:
    """Holds parameters and state, and steps by a list of functions; no torch.optim inside."""

    def __init__(self, params, cbs, **defaults):
        self.param_lists = [list(group) for group in params]
        self.hypers = [dict(defaults) for _ in self.param_lists]
        self.cbs, self.state = cbs, {}

    def all_params(self):
        for params, hyper in zip(self.param_lists, self.hypers, strict=True):
            for p in params:
                yield p, self.state.setdefault(p, {}), hyper

    @torch.no_grad()
    def step(self):
        for p, state, hyper in self.all_params():
            if p.grad is not None:
                for cb in self.cbs:
                    cb(p, state, **hyper)

    def zero_grad(self):
        for p, _, _ in self.all_params():
            if p.grad is not None:
                p.grad.detach_()
                p.grad.zero_()


def weight_decay(p, state, lr, wd, **kwargs):
    p.data.mul_(1 - lr * wd)


def adam_step(p, state, lr, mom, sqr_mom, eps, **kwargs):
    step = state["step"] = state.get("step", 0) + 1
    avg = state.setdefault("grad_avg", torch.zeros_like(p))
    sqr = state.setdefault("sqr_avg", torch.zeros_like(p))
    avg.mul_(mom).add_(p.grad, alpha=1 - mom)
    sqr.mul_(sqr_mom).addcmul_(p.grad, p.grad, value=1 - sqr_mom)
    debias = (sqr / (1 - sqr_mom**step)).sqrt() + eps
    p.data.addcdiv_(avg, debias, value=-lr / (1 - mom**step))


class CancelBatchException(Exception):
    pass


class Callback:
    def __getattr__(self, name):
        return getattr(self.learn, name)


class TrainEvalCallback(Callback):
    def before_train(self):
        if not (FAULT == "train-once" and self.learn.epoch > 0):
            self.model.train()

    def before_validate(self):
        self.model.eval()


class ParamScheduler(Callback):
    def before_batch(self):
        if self.training:
            done = self.learn.train_iter / (self.learn.n_epoch * len(self.dls[0]))
            if done < 0.25:
                lr = self.lr_max * (0.04 + 0.96 * (1 - math.cos(math.pi * done / 0.25)) / 2)
            else:
                lr = self.lr_max * (1 + math.cos(math.pi * (done - 0.25) / 0.75)) / 2 + 1e-7
            for hyper in self.opt.hypers:
                hyper["lr"] = lr


class Recorder(Callback):
    def before_validate(self):
        self.learn.valid_losses = []

    def after_batch(self):
        if self.training:
            print(f"batch {self.learn.train_iter} loss {self.learn.loss.item()}")
            self.learn.train_iter += 1
        else:
            self.learn.valid_losses.append((self.learn.loss.item(), len(self.learn.yb)))

    def after_validate(self):
        total = sum(loss * n for loss, n in self.learn.valid_losses)
        print(f"epoch {self.learn.epoch} valid_loss {total / sum(n for _, n in self.valid_losses)}")


class Learner:
    def __init__(self, dls, model, loss_func, opt_func, lr, cbs):
        self.dls, self.model, self.loss_func = dls, model, loss_func
        self.opt_func, self.lr_max = opt_func, lr
        self.cbs = cbs
        for cb in cbs:
            cb.learn = self

    def __call__(self, name):
        for cb in self.cbs:
            method = type(cb).__dict__.get(name)
            if method is not None:
                method(cb)

    def one_batch(self, batch):
        self.xb, self.yb = batch
        self("before_batch")
        self.pred = self.model(self.xb)
        self.loss = self.loss_func(self.pred, self.yb)
        if self.training:
            self.loss.backward()
            self.opt.step()
            self.opt.zero_grad()
        self("after_batch")

    def all_batches(self, dl):
        for batch in dl:
            self.one_batch(batch)

    def fit_one_cycle(self, n_epoch):
        self.n_epoch, self.train_iter = n_epoch, 0
        self.opt = self.opt_func([self.model[:3].parameters(), self.model[3:].parameters()])
        for self.epoch in range(n_epoch):
            self.training = True
            self("before_train")
            self.all_batches(self.dls[0])
            self.training = False
            self("before_validate")
            with torch.no_grad():
                self.all_batches(self.dls[1])
            self("after_validate")


def split(count, seed):
    centers = torch.randn(5, 20, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 5, (count,), generator=generator)
    return TensorDataset(centers[labels] + torch.randn(count, 20, generator=generator), labels)


dls = (
    DataLoader(split(1280, 1), batch_size=32, shuffle=True, drop_last=True),
    DataLoader(split(300, 2), batch_size=64),
)
model = nn.Sequential(
    nn.Linear(20, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 5)
)


def adam(params):
    hyper = {"lr": 1e-3, "wd": 0.01, "mom": 0.9, "sqr_mom": 0.99, "eps": 1e-5}
    return Optimizer(params, [weight_decay, adam_step], **hyper)


rate = 10.0 if FAULT == "rate-too-high" else 1e-2
learn = Learner(
    dls, model, F.cross_entropy, adam, rate, [TrainEvalCallback(), ParamScheduler(), Recorder()]
)
learn.fit_one_cycle(5)
