"""Small trainings of many kinds for the contract of experiments, made again for each test."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.setup import LossPhase, Setup

KINDS: dict[str, Callable[[], Setup]] = {}


def kind(function: Callable[[], Setup]) -> Callable[[], Setup]:
    def make() -> Setup:
        torch.manual_seed(0)
        return function()

    KINDS[function.__name__] = make
    return make


def _loaders(*tensors: Tensor, batch: int = 16) -> tuple[DataLoader, DataLoader]:
    count = len(tensors[0]) * 3 // 4
    train = TensorDataset(*(each[:count] for each in tensors))
    valid = TensorDataset(*(each[count:] for each in tensors))
    return DataLoader(train, batch, shuffle=True), DataLoader(valid, batch)


@kind
def classifier() -> Setup:
    x = torch.randn(256, 8)
    train, _ = _loaders(x, (x[:, :2].sum(1) > 0).long())
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    return Setup.of(model, torch.optim.Adam(model.parameters()), nn.CrossEntropyLoss(), train)


@kind
def with_batch_norm_dropout_and_schedule() -> Setup:
    x = torch.randn(256, 3, 8, 8)
    train, valid = _loaders(x, torch.randint(4, (256,)))
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(8 * 36, 4),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    average = torch.optim.swa_utils.AveragedModel(model)
    return Setup.of(
        model, optimizer, loss, train, valid=valid, scheduler=scheduler, others=[average]
    )


@kind
def recurrent_regression() -> Setup:
    class Forecaster(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(1, 8, batch_first=True)
            self.head = nn.Linear(8, 1)
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return self.head(self.rnn(x)[0][:, -1])

    x = torch.randn(128, 10, 1).cumsum(1)
    train, valid = _loaders(x, x[:, -1])
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return Setup.of(model, optimizer, nn.MSELoss(), train, valid=valid, max_norm=1.0)


@kind
def language_model() -> Setup:
    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(20, 16)
            self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
            self.head = nn.Linear(16, 20)

        def forward(self, tokens: Tensor) -> Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
            return self.head(self.block(self.embed(tokens), src_mask=mask, is_causal=True))

    def loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
        (tokens,) = batch
        logits = model(tokens[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    train, valid = _loaders(torch.randint(20, (128, 12)))
    model = Causal()
    return Setup.of(model, torch.optim.AdamW(model.parameters(), 1e-3), loss, train, valid=valid)


@kind
def with_hand_written_loss_and_noise() -> Setup:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        x = batch["x"] + 0.1 * torch.randn_like(batch["x"])
        return ((model(x) - batch["y"]) ** 2).mean()

    x = torch.randn(64, 4)
    batches = [{"x": x[i : i + 8], "y": x[i : i + 8].sum(1, keepdim=True)} for i in range(0, 64, 8)]
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return Setup.of(model, torch.optim.SGD(model.parameters(), lr=0.05), loss, batches)


@kind
def adversaries() -> Setup:
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    discriminator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))

    def logit_loss(points: Tensor, real: bool) -> Tensor:
        logits = discriminator(points)
        wanted = torch.ones_like(logits) if real else torch.zeros_like(logits)
        return functional.binary_cross_entropy_with_logits(logits, wanted)

    def tell_apart(batch: list[Tensor]) -> Tensor:
        fake = generator(torch.randn(len(batch[0]), 2)).detach()
        return logit_loss(batch[0], True) + logit_loss(fake, False)

    def deceive(batch: list[Tensor]) -> Tensor:
        return logit_loss(generator(torch.randn(len(batch[0]), 2)), True)

    phases = (
        LossPhase(tell_apart, (torch.optim.Adam(discriminator.parameters(), 1e-3),)),
        LossPhase(deceive, (torch.optim.Adam(generator.parameters(), 1e-3),)),
    )
    train, _ = _loaders(torch.randn(128, 2))
    models = {"generator": generator, "discriminator": discriminator}
    return Setup(models=models, phases=phases, train=train, loaders={"train": train})


@kind
def in_bfloat16_with_nan() -> Setup:
    x = torch.randn(64, 4)
    x[7, 2] = torch.nan
    train, _ = _loaders(x.bfloat16(), torch.randint(2, (64,)))
    model = nn.Linear(4, 2).bfloat16()
    return Setup.of(
        model, torch.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss(), train
    )
