"""Small healthy trainings of many kinds, on which no control experiment may find a fault."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, TensorDataset

from holter import check
from holter.diagnosis.engine import Checkup
from holter.lab.running import run
from holter.lab.setup import LossPhase, Setup
from holter.lab.state import State

HEALTHY: dict[str, Callable[[], Setup]] = {}


def checked(experiment: str, rule: str, setup: Setup, folder: Path) -> Checkup:
    """What a rule says of an experiment, which leaves the training as it was and does not fail."""
    before = State(setup).digest
    made = run(experiment, setup, folder)
    assert State(setup).digest == before
    said = check(made, select=[rule])
    assert not [each for each in said.not_examined if "failed" in each.because]
    return said


def healthy(function: Callable[[], Setup]) -> Callable[[], Setup]:
    def make() -> Setup:
        torch.manual_seed(0)
        return function()

    HEALTHY[function.__name__] = make
    return make


def loader(*tensors: Tensor, batch: int = 16, shuffle: bool = True, **more: Any) -> DataLoader:
    return DataLoader(TensorDataset(*tensors), batch, shuffle=shuffle, **more)


def adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr)


def points(count: int = 512, features: int = 8, classes: int = 4) -> tuple[Tensor, Tensor]:
    centres = 1.5 * torch.randn(classes, features)
    y = torch.randint(classes, (count,))
    return centres[y] + torch.randn(count, features), y


def images(count: int = 256, classes: int = 4) -> tuple[Tensor, Tensor]:
    patterns = torch.randn(classes, 3, 8, 8)
    y = torch.randint(classes, (count,))
    return patterns[y] + torch.randn(count, 3, 8, 8), y


def text(count: int = 256, length: int = 12, words: int = 20) -> Tensor:
    """Sequences of a Markov chain."""
    chain = (2 * torch.randn(words, words)).softmax(1)
    tokens = [torch.randint(words, (count,))]
    for _ in range(length):
        tokens.append(torch.multinomial(chain[tokens[-1]], 1).squeeze(1))
    return torch.stack(tokens, 1)


@healthy
def mlp() -> Setup:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(*points()))


@healthy
def mlp_of_square_batches() -> Setup:
    x, y = points(features=16)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(x, y, batch=16))


@healthy
def regression() -> Setup:
    x = torch.randn(512, 6)
    y = torch.sin(x[:, :1]) + x[:, 1:2]
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    return Setup.of(model, optimizer, nn.MSELoss(), loader(x, y))


@healthy
def several_labels() -> Setup:
    x = torch.randn(512, 6)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    return Setup.of(model, adam(model), nn.BCEWithLogitsLoss(), loader(x, (x[:, :3] > 0).float()))


@healthy
def cnn() -> Setup:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(8 * 36, 4),
    )  # fmt: skip
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(*images(), batch=32))


@healthy
def new_head_on_a_frozen_body() -> Setup:
    body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU()).requires_grad_(False)
    head = nn.Linear(32, 4)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    model = nn.Sequential(body, head)
    body.eval()
    optimizer = torch.optim.AdamW(head.parameters(), 1e-2)
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader(*points()))


@healthy
def with_warm_up() -> Setup:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    nn.init.zeros_(model[2].weight)
    nn.init.zeros_(model[2].bias)
    optimizer = adam(model, 3e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 100, 1.0))
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader(*points()), scheduler=scheduler)


class Recurrent(nn.Module):
    def __init__(self, *, batch_first: bool, takes: int = 0) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 16, batch_first=batch_first)
        self.head = nn.Linear(16, 1)
        self.dim = takes

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0].select(self.dim, -1))


@healthy
def lstm() -> Setup:
    x = torch.randn(256, 10, 3)
    model = Recurrent(batch_first=True, takes=1)
    return Setup.of(model, adam(model), nn.MSELoss(), loader(x, x[:, -3:, :1].sum(1)))


@healthy
def lstm_with_time_first() -> Setup:
    def collate(pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        xs, ys = zip(*pairs, strict=True)
        return torch.stack(xs, 1), torch.stack(ys)

    x = torch.randn(256, 10, 3)
    model = Recurrent(batch_first=False, takes=0)
    train = loader(x, x[:, -3:, :1].sum(1), collate_fn=collate)
    return Setup.of(model, adam(model), nn.MSELoss(), train)


@healthy
def lstm_on_one_long_sequence() -> Setup:
    class Tracker(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(2, 16)
            self.head = nn.Linear(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.rnn(x)[0])

    x = torch.randn(256, 2)
    y = x.cumsum(0)[:, :1] / 16
    model = Tracker()
    train = loader(x, y, batch=32, shuffle=False)
    return Setup.of(model, adam(model), nn.MSELoss(), train)


class Causal(nn.Module):
    """A small language model; other masks and layouts make it a faulty one."""

    def __init__(self, words: int = 20, *, mask: str = "causal", batch_first: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 16)
        self.position = nn.Parameter(0.1 * torch.randn(64, 16))
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=batch_first)
        self.head = nn.Linear(16, words)
        self.mask, self.batch_first = mask, batch_first

    def forward(self, tokens: Tensor) -> Tensor:
        time = tokens.shape[1 if self.batch_first else 0]
        position = self.position[:time] if self.batch_first else self.position[:time, None]
        diagonal = {"causal": 1, "one ahead": 2, "none": time + 1}[self.mask]
        mask = torch.ones(time, time, dtype=torch.bool).triu(diagonal)
        return self.head(self.block(self.embed(tokens) + position, src_mask=mask))


def next_token(model: nn.Module, batch: Any) -> Tensor:
    (tokens,) = batch
    logits = model(tokens[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


@healthy
def language_model() -> Setup:
    model = Causal()
    return Setup.of(model, adam(model), next_token, loader(text()))


@healthy
def language_model_without_a_loader() -> Setup:
    model, tokens = Causal(), text()
    batches = [[tokens[at : at + 16]] for at in range(0, 256, 16)]
    return Setup.of(model, adam(model), next_token, batches)


@healthy
def language_model_with_time_first() -> Setup:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        tokens = batch[0].t()
        return functional.cross_entropy(model(tokens[:-1]).flatten(0, 1), tokens[1:].flatten())

    model = Causal(batch_first=False)
    return Setup.of(model, adam(model), loss, loader(text()))


@healthy
def recurrent_language_model() -> Setup:
    class Characters(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(20, 16, batch_first=True)
            self.head = nn.Linear(16, 20)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.rnn(x)[0]).transpose(1, 2)

    tokens = text()
    x = functional.one_hot(tokens[:, :-1], 20).float()
    model = Characters()
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(x, tokens[:, 1:]))


@healthy
def loss_inside_the_model() -> Setup:
    class Output(dict):
        pass

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.causal = Causal()

        def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> Any:
            logits = self.causal(input_ids)
            loss = None
            if labels is not None:
                loss = functional.cross_entropy(
                    logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
                )
            return Output(loss=loss, logits=logits)

    def collate(rows: list[tuple[Tensor]]) -> dict[str, Tensor]:
        tokens = torch.stack([row[0] for row in rows])
        return {"input_ids": tokens, "labels": tokens.clone()}

    model = Whole()
    train = loader(text(), collate_fn=collate)
    return Setup.of(model, adam(model), lambda model, batch: model(**batch)["loss"], train)


def sentences(count: int = 256, *, classes: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """Padded tokens, their lengths, and a label that cue words tell."""
    y = torch.randint(classes, (count,))
    lengths = torch.randint(4, 13, (count,))
    tokens = torch.randint(5, 30, (count, 12))
    cue = torch.rand(count, 12) < 0.4
    tokens = torch.where(cue, 1 + y[:, None], tokens)
    return tokens.masked_fill(torch.arange(12) >= lengths[:, None], 0), lengths, y


class Encoder(nn.Module):
    """Classifies padded tokens; told of padding by a mask, or by the tokens themselves."""

    def __init__(self, *, masked: bool = True, pooled: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 4)
        self.masked, self.pooled = masked, pooled

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        real = tokens != 0 if mask is None else mask.bool()
        x = self.block(self.embed(tokens), src_key_padding_mask=~real if self.masked else None)
        weight = real[..., None].float() if self.pooled else torch.ones_like(x[..., :1])
        return self.head((x * weight).sum(1) / weight.sum(1))


@healthy
def padded_tokens() -> Setup:
    tokens, _, y = sentences()
    model = Encoder()
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(tokens, y))


@healthy
def padded_tokens_with_mask() -> Setup:
    tokens, _, y = sentences()
    model = Encoder()

    def loss(model: nn.Module, batch: Any) -> Tensor:
        tokens, mask, labels = batch
        return functional.cross_entropy(model(tokens, mask=mask), labels)

    return Setup.of(model, adam(model), loss, loader(tokens, (tokens != 0).long(), y))


class Tagger(nn.Module):
    def __init__(self, *, packed: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 12, padding_idx=0)
        self.rnn = nn.GRU(12, 12, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 4)
        self.packed = packed

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        x = self.embed(words)
        if not self.packed:
            return self.head(self.rnn(x)[0])
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0])


def tag(model: nn.Module, batch: Any) -> Tensor:
    words, lengths, tags = batch
    return functional.cross_entropy(model(words, lengths).transpose(1, 2), tags)


def tagged() -> DataLoader:
    kind = torch.randint(4, (30,))
    rows = [torch.randint(1, 30, (int(torch.randint(4, 14, ())),)) for _ in range(256)]

    def collate(words: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        lengths = torch.tensor([len(each) for each in words])
        tags = pad_sequence([kind[each] for each in words], True, -100)
        return pad_sequence(words, True, 0), lengths, tags

    return DataLoader(rows, 16, shuffle=True, collate_fn=collate)


@healthy
def tagger() -> Setup:
    model = Tagger()
    return Setup.of(model, adam(model, 5e-3), tag, tagged())


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.core = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.head(self.core(self.embed(source), self.embed(target), tgt_mask=mask))


@healthy
def translator() -> Setup:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        source, target = batch
        logits = model(source, target[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())

    tokens = text(length=9)
    model = Translator()
    return Setup.of(model, adam(model), loss, loader(tokens.flip(1)[:, :8], tokens))


@healthy
def vae() -> Setup:
    class Coder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = nn.Linear(8, 6), nn.Linear(3, 8)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, log_var = self.encode(x).chunk(2, 1)
            code = mean + torch.randn_like(mean) * (log_var / 2).exp()
            return self.decode(code), mean, log_var

    def loss(model: nn.Module, batch: Any) -> Tensor:
        back, mean, log_var = model(batch[0])
        distance = functional.mse_loss(back, batch[0], reduction="sum") / len(back)
        return distance - 0.5 * (1 + log_var - mean**2 - log_var.exp()).sum() / len(back)

    model = Coder()
    return Setup.of(model, adam(model), loss, loader(points()[0]))


@healthy
def contrastive() -> Setup:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        views = [batch[0] + 0.3 * torch.randn_like(batch[0]) for _ in range(2)]
        one, other = (functional.normalize(model(each), dim=1) for each in views)
        return functional.cross_entropy(one @ other.T / 0.2, torch.arange(len(one)))

    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
    return Setup.of(model, adam(model), loss, loader(points()[0]))


@healthy
def pairs_of_two_towers() -> Setup:
    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image, self.words = nn.Linear(8, 16), nn.Linear(6, 16)

        def forward(self, image: Tensor, words: Tensor) -> dict[str, Tensor]:
            one, other = self.image(image), self.words(words)
            return {"similarity": one @ other.T, "image": one, "words": other}

    def loss(model: nn.Module, batch: Any) -> Tensor:
        similarity = model(*batch)["similarity"]
        return functional.cross_entropy(similarity, torch.arange(len(similarity)))

    x = torch.randn(256, 8)
    model = Towers()
    return Setup.of(model, adam(model), loss, loader(x, x[:, :6]))


@healthy
def gan() -> Setup:
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    discriminator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    bce = functional.binary_cross_entropy_with_logits

    def tell_apart(batch: Any) -> Tensor:
        fake = discriminator(generator(torch.randn(len(batch[0]), 2)).detach())
        real = discriminator(batch[0])
        return bce(real, torch.ones_like(real)) + bce(fake, torch.zeros_like(fake))

    def deceive(batch: Any) -> Tensor:
        fake = discriminator(generator(torch.randn(len(batch[0]), 2)))
        return bce(fake, torch.ones_like(fake))

    phases = (LossPhase(tell_apart, (adam(discriminator),)), LossPhase(deceive, (adam(generator),)))
    train = loader(torch.randn(128, 2))
    models = {"generator": generator, "discriminator": discriminator}
    return Setup(models=models, phases=phases, train=train, loaders={"train": train})


@healthy
def policy_gradient() -> Setup:
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        policy = torch.distributions.Categorical(logits=model(batch))
        action = policy.sample()
        reward = (action == (batch[:, 0] > 0).long()).float()
        return -(policy.log_prob(action) * (reward - reward.mean())).mean()

    return Setup.of(model, adam(model), loss, [torch.randn(32, 4) for _ in range(8)])


@healthy
def diffusion() -> Setup:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        x, noise = batch[0], torch.randn_like(batch[0])
        time = torch.rand(len(x), 1)
        noisy = (1 - time) * x + time * noise
        return functional.mse_loss(model(torch.cat((noisy, time), 1)), noise)

    model = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8))
    return Setup.of(model, adam(model), loss, loader(points()[0]))


@healthy
def graph() -> Setup:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            for layer in (self.first, self.second):
                h = layer(x)
                x = h.index_add(0, edges[1], h[edges[0]]).relu()
            return x

    x, y = points(64)
    edges = torch.randint(64, (2, 200))
    model = Graph()

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0], edges), batch[1])

    return Setup.of(model, adam(model), loss, [(x, y)])


@healthy
def hand_written_loss_of_dicts() -> Setup:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return ((model(batch["x"]) - batch["y"]) ** 2).mean()

    x = torch.randn(256, 4)
    y = x.sum(1, keepdim=True)
    batches = [{"x": x[at : at + 8], "y": y[at : at + 8]} for at in range(0, 256, 8)]
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    return Setup.of(model, torch.optim.SGD(model.parameters(), 0.05), loss, batches)


@healthy
def in_bfloat16() -> Setup:
    x, y = points()
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).bfloat16()
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(x.bfloat16(), y))


@healthy
def in_autocast() -> Setup:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return functional.cross_entropy(model(batch[0]), batch[1])

    tokens, _, y = sentences()
    model = Encoder()
    return Setup.of(model, adam(model), loss, loader(tokens, y))


@healthy
def batches_of_one() -> Setup:
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(*points(64), batch=1))


@healthy
def with_nan_at_once() -> Setup:
    x, y = points()
    x[:, 2] = torch.nan
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(x, y))


@healthy
def parts_called_one_by_one() -> Setup:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 4)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model.head(model.body(batch[0]).relu()), batch[1])

    model = Parts()
    return Setup.of(model, adam(model), loss, loader(*points()))


@healthy
def segmentation() -> Setup:
    x = torch.randn(128, 3, 8, 8)
    y = (x.mean(1) > 0).long() + (x[:, 0] > 1).long()
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(),
                          nn.Conv2d(8, 3, 1))  # fmt: skip
    return Setup.of(model, adam(model, 1e-2), nn.CrossEntropyLoss(), loader(x, y))


@healthy
def padded_tokens_as_nested_tensors() -> Setup:
    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(30, 16, padding_idx=0)
            layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
            self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(16, 4)

        def forward(self, tokens: Tensor) -> Tensor:
            padding = tokens == 0
            x = self.encoder(self.embed(tokens), src_key_padding_mask=padding)
            real = ~padding[:, : x.shape[1], None]
            return self.head((x * real).sum(1) / real.sum(1))

    tokens, _, y = sentences()
    model = Nested()
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(tokens, y))


@healthy
def recurrence_with_a_state_that_stays() -> Setup:
    class Stateful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
            self.state = torch.zeros(1, 16, 8)

        def forward(self, x: Tensor) -> Tensor:
            states, last = self.rnn(x, self.state)
            self.state = last.detach()
            return self.head(states[:, -1])

    x = torch.randn(256, 10, 3)
    model = Stateful()
    return Setup.of(model, adam(model), nn.MSELoss(), loader(x, x[:, -1, :1]))


@healthy
def gradients_inside_the_loss() -> Setup:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        x = batch[0].clone().requires_grad_()
        y = model(x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return ((slope - x.cos()) ** 2).mean() + (model(torch.zeros(1, 1)) ** 2).mean()

    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    return Setup.of(model, adam(model, 1e-2), loss, loader(6 * torch.rand(256, 1) - 3))


@healthy
def forces_inside_the_model() -> Setup:
    class Field(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))

        def forward(self, x: Tensor) -> Tensor:
            x = x.detach().requires_grad_()
            energy = self.energy(x).sum()
            return -torch.autograd.grad(energy, x, create_graph=True)[0]

    x = torch.randn(256, 3)
    model = Field()
    return Setup.of(model, adam(model, 1e-2), nn.MSELoss(), loader(x, -2 * x))


@healthy
def batches_of_many_things() -> Setup:
    def collate(rows: list[tuple[Tensor, Tensor]]) -> dict[str, Any]:
        x, y = (torch.stack(each) for each in zip(*rows, strict=True))
        return {"names": ["a"] * len(x), "x": x, "info": {"y": y, "none": None}, "epoch": 3}

    def loss(model: nn.Module, batch: dict[str, Any]) -> Tensor:
        return functional.cross_entropy(model(batch["x"], scale=2.0), batch["info"]["y"])

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

        def forward(self, x: Tensor, *, scale: float) -> dict[str, Any]:
            return self.body(x * scale)

    model = Scaled()
    return Setup.of(model, adam(model), loss, loader(*points(), collate_fn=collate))


@healthy
def teacher_forcing_by_chance() -> Setup:
    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.cell, self.head = (
                nn.Embedding(20, 8),
                nn.GRUCell(8, 8),
                nn.Linear(8, 20),
            )

        def forward(self, tokens: Tensor) -> Tensor:
            state, logits, told = tokens.new_zeros(len(tokens), 8).float(), [], tokens[:, 0]
            for at in range(tokens.shape[1]):
                told = tokens[:, at] if random.random() < 0.7 or not at else logits[-1].argmax(1)
                state = self.cell(self.embed(told), state)
                logits.append(self.head(state))
            return torch.stack(logits, 1)

    model = Decoder()
    return Setup.of(model, adam(model), next_token, loader(text()))
