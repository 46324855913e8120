"""The annotated transformer: a batch object, `run_epoch`, the loss in a class with a call."""

import time

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)


class Batch:
    def __init__(self, src, tgt=None, pad=0):
        self.src = src
        self.src_mask = (src != pad).unsqueeze(-2)
        if tgt is not None:
            self.tgt, self.tgt_y = tgt[:, :-1], tgt[:, 1:]
            self.ntokens = (self.tgt_y != pad).data.sum()


class Model(nn.Module):
    def __init__(self, vocab, n=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, n)
        self.place = nn.Parameter(torch.randn(10, n) * 0.1)
        self.core = nn.Transformer(n, 2, 1, 1, 64, 0.0, batch_first=True)
        self.generator = nn.Linear(n, vocab)

    def forward(self, src, tgt, src_mask):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        source = self.embed(src) + self.place[: src.size(1)]
        return self.core(source, self.embed(tgt) + self.place[: tgt.size(1)], tgt_mask=mask)


class SimpleLossCompute:
    def __init__(self, generator, criterion):
        self.generator, self.criterion = generator, criterion

    def __call__(self, x, y, norm):
        x = self.generator(x)
        sloss = self.criterion(x.contiguous().view(-1, x.size(-1)), y.contiguous().view(-1)) / norm
        return sloss.data * norm, sloss


class TrainState:
    step = samples = tokens = 0


def data_gen(V, batch_size, nbatches):
    for i in range(nbatches):
        data = torch.randint(1, V, size=(batch_size, 10))
        data[:, 0] = 1
        yield Batch(data.requires_grad_(False), data.clone().detach(), 0)


def run_epoch(data_iter, model, loss_compute, optimizer, scheduler, mode="train", train_state=None):
    start = time.time()
    total_tokens = total_loss = 0
    train_state = train_state or TrainState()
    for i, batch in enumerate(data_iter):
        out = model.forward(batch.src, batch.tgt, batch.src_mask)
        loss, loss_node = loss_compute(out, batch.tgt_y, batch.ntokens)
        if mode == "train":
            loss_node.backward()
            train_state.step += 1
            train_state.samples += batch.src.shape[0]
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
        total_loss += loss
        total_tokens += batch.ntokens
        if i % 10 == 1 and mode == "train":
            print(
                f"Epoch Step: {i:6d} | Loss: {loss / batch.ntokens:6.2f} | {time.time() - start:.1f}"
            )
        del loss
        del loss_node
    return total_loss / total_tokens, train_state


def rate(step, model_size, factor, warmup):
    step = max(step, 1)
    return factor * (model_size ** (-0.5) * min(step ** (-0.5), step * warmup ** (-1.5)))


V = 11
criterion = nn.CrossEntropyLoss(reduction="sum", ignore_index=0)
model = Model(V)
optimizer = torch.optim.Adam(model.parameters(), lr=0.5, betas=(0.9, 0.98), eps=1e-9)
lr_scheduler = LambdaLR(optimizer, lambda step: rate(step, 32, 1.0, 100))
for epoch in range(3):
    model.train()
    compute = SimpleLossCompute(model.generator, criterion)
    run_epoch(data_gen(V, 16, 20), model, compute, optimizer, lr_scheduler)
    model.eval()
    with torch.no_grad():
        run_epoch(data_gen(V, 16, 3), model, compute, None, None, mode="eval")
