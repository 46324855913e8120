"""Trainings whose learning rate is looked for: most after the zoo's, with data for one pass or two.

There is so much data that 300 steps hardly overfit: what a rate is worth is then told by the loss
on held data. The noisy twin of each has batches of an eighth and a fifth of its labels wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from holter.lab.setup import Setup

Batch = tuple[Tensor, ...]
_TRAIN, _HELD = 8192, 1024
_SIZE = 10  # pixels of an image's side
_CONFIGURED = 1e-6
_WRONG = 0.2  # of the labels of a noisy workload


@dataclass(frozen=True)
class Task:
    """A training that has not begun."""

    model: nn.Module
    loss: Callable[[nn.Module, Batch], Tensor]
    optimizer: Optimizer
    loader: DataLoader[Batch]
    held: list[Batch]
    max_norm: float | None = None

    def setup(self) -> Setup:
        """The task as holter's experiments take it."""
        return Setup.of(self.model, self.optimizer, self.loss, self.loader, max_norm=self.max_norm)


def task(name: str, seed: int, *, noisy: bool) -> Task:
    """A workload from its beginning: its data, its weights and its order are the seed's.

    Its learning rate is one that no finder gains by knowing; groups keep their ratios.
    """
    torch.manual_seed(1000 * seed + 17)
    made = WORKLOADS[name](noisy)
    first = made.optimizer.param_groups[0]["lr"]
    for group in made.optimizer.param_groups:
        group["lr"] *= _CONFIGURED / first
    return made


def _loader(columns: Batch, size: int, *, noisy: bool) -> tuple[DataLoader[Batch], list[Batch]]:
    """Training batches in random order (an eighth as large for noisy ones), and held ones."""
    train = TensorDataset(*(each[:_TRAIN] for each in columns))
    held = [*zip(*(each[_TRAIN:].split(256) for each in columns), strict=True)]
    order = BatchSampler(RandomSampler(train), max(size // 8, 2) if noisy else size, True)
    return DataLoader(train, sampler=order, batch_size=None), held


def _mislabelled(labels: Tensor, classes: int, *, noisy: bool, always: float = 0.0) -> Tensor:
    wrong = torch.rand(labels.shape) < (_WRONG if noisy else always)
    return torch.where(wrong, torch.randint(classes, labels.shape), labels)


def _noised(targets: Tensor, *, noisy: bool) -> Tensor:
    return targets + 0.5 * targets.std() * torch.randn_like(targets) if noisy else targets


def _classified(model: nn.Module, batch: Batch) -> Tensor:
    *inputs, labels = batch
    return functional.cross_entropy(model(*inputs), labels)


def _regressed(model: nn.Module, batch: Batch) -> Tensor:
    *inputs, targets = batch
    return functional.mse_loss(model(*inputs), targets)


def _tabular(noisy: bool, optimizer: Callable[..., Optimizer]) -> Task:
    centres = 0.7 * torch.randn(10, 20)
    labels = torch.randint(10, (_TRAIN + _HELD,))
    rows = centres[labels] + torch.randn(len(labels), 20)
    rows = torch.cat((rows, (rows[:, :4] * rows[:, 4:8])), 1)
    model = nn.Sequential(
        nn.Linear(24, 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(64, 10),
    )
    labels = _mislabelled(labels, 10, noisy=noisy)
    loader, held = _loader((rows, labels), 64, noisy=noisy)
    return Task(model, _classified, optimizer(model.parameters()), loader, held)


def _houses() -> Batch:
    features = torch.rand(_TRAIN + _HELD, 12)
    quality = (
        10 * torch.sin(3.1 * features[:, 0] * features[:, 1])
        + 20 * (features[:, 2] - 0.5) ** 2
        + 10 * features[:, 3]
        + 5 * features[:, 4]
        + torch.randn(len(features))
    )
    return (features - 0.5) / 0.29, (quality.unsqueeze(1) - 14.4) / 5


def _regression(noisy: bool, optimizer: Callable[..., Optimizer]) -> Task:
    inputs, targets = _houses()
    model = nn.Sequential(
        nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    loader, held = _loader((inputs, _noised(targets, noisy=noisy)), 64, noisy=noisy)
    return Task(model, _regressed, optimizer(model.parameters()), loader, held)


def _stripes(count: int, classes: int, size: int) -> Batch:
    labels = torch.randint(classes, (count,))
    angle = (labels % 4) * torch.pi / 4 + 0.15 * torch.randn(count)
    frequency = torch.where(labels < 4, 0.7, 1.2)
    phase = 2 * torch.pi * torch.rand(count)
    down, across = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    along = angle.cos().view(-1, 1, 1) * across + angle.sin().view(-1, 1, 1) * down
    images = torch.sin(frequency.view(-1, 1, 1) * along + phase.view(-1, 1, 1))
    return (images + torch.randn(count, size, size)).unsqueeze(1), labels


def _cnn(noisy: bool) -> Task:
    images, labels = _stripes(_TRAIN + _HELD, 8, _SIZE)

    def convolution(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
        )

    model = nn.Sequential(
        convolution(1, 8),
        nn.MaxPool2d(2),
        convolution(8, 16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 8),
    )
    labels = _mislabelled(labels, 8, noisy=noisy)
    loader, held = _loader((images, labels), 64, noisy=noisy)
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    return Task(model, _classified, optimizer, loader, held)


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.GroupNorm(4, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.body(x))


def _resnet(noisy: bool) -> Task:
    images, labels = _stripes(_TRAIN + _HELD, 8, _SIZE)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        _Residual(12),
        _Residual(12),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 8),
    )
    labels = _mislabelled(labels, 8, noisy=noisy)
    loader, held = _loader((images, labels), 32, noisy=noisy)
    optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    return Task(model, _classified, optimizer, loader, held)


class _Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x)
        return self.head(states[:, -1])


def _lstm(noisy: bool) -> Task:
    count, window = _TRAIN + _HELD, 16
    times = torch.arange(window + 1) / (8 + 8 * torch.rand(count, 1))
    waves = torch.sin(6.28 * (times + torch.rand(count, 1))) + 0.5 * torch.sin(2.7 * times)
    waves = waves + 0.1 * torch.randn_like(waves)
    model = _Forecaster()
    targets = _noised(waves[:, window:], noisy=noisy)
    loader, held = _loader((waves[:, :window, None], targets), 32, noisy=noisy)
    return Task(model, _regressed, Adam(model.parameters(), lr=5e-3), loader, held, max_norm=1.0)


class _Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(60, 16)
        self.rnn = nn.GRU(16, 16, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(32, 6)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.dropout(self.rnn(self.embed(words))[0])).transpose(1, 2)


def _gru_tagger(noisy: bool) -> Task:
    kind = torch.randint(6, (60,))
    words = torch.randint(60, (_TRAIN + _HELD, 8))
    kinds = kind[words]
    before = torch.cat((kinds[:, :1], kinds[:, :-1]), 1)
    tags = torch.where(before < 2, (kinds + 1) % 6, kinds)
    tags = _mislabelled(tags, 6, noisy=noisy, always=0.05)
    tags[torch.arange(8) >= torch.randint(3, 9, (len(tags), 1))] = -100
    model = _Tagger()
    loader, held = _loader((words, tags), 32, noisy=noisy)
    return Task(model, _classified, Adam(model.parameters(), lr=5e-3), loader, held)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.norm1(x)).chunk(3, 2)
        q, k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in parts)
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class _LanguageModel(nn.Module):
    def __init__(self, words: int, context: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.position = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(_Block(width, 4), _Block(width, 4))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.norm(self.blocks(self.embed(tokens) + self.position))
        return self.head(x).transpose(1, 2)


def _causal_lm(noisy: bool) -> Task:
    words, context, width = 40, 12, 24
    chain = (2.5 * torch.randn(words, words)).softmax(1)
    tokens = [torch.randint(words, (_TRAIN + _HELD,))]
    for _ in range(context):
        tokens.append(torch.multinomial(chain[tokens[-1]], 1).squeeze(1))
    text = torch.stack(tokens, dim=1)
    targets = _mislabelled(text[:, 1:], words, noisy=noisy)
    model = _LanguageModel(words, context, width)
    loader, held = _loader((text[:, :-1], targets), 16, noisy=noisy)
    matrices = [each for each in model.parameters() if each.ndim > 1]
    vectors = [each for each in model.parameters() if each.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = AdamW(groups, lr=4e-3, betas=(0.9, 0.95))
    return Task(model, _classified, optimizer, loader, held, max_norm=1.0)


class _VAE(nn.Module):
    def __init__(self, size: int, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 96), nn.ReLU())
        self.mu, self.logvar = nn.Linear(96, latent), nn.Linear(96, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 96), nn.ReLU(), nn.Linear(96, size))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        return self.decoder(mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)), mu, logvar


def _evidence(model: nn.Module, batch: Batch) -> Tensor:
    (x,) = batch
    logits, mu, logvar = model(x)
    reconstruction = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(
        x
    )
    return reconstruction - 0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()


def _vae(noisy: bool) -> Task:
    grid = torch.arange(12).float()
    down, across = (12 * (0.2 + 0.6 * torch.rand(_TRAIN + _HELD, 1)) for _ in range(2))
    width = 1.2 + 1.3 * torch.rand(_TRAIN + _HELD, 1)
    rows = torch.exp(-(((grid - down) / width) ** 2))
    columns = torch.exp(-(((grid - across) / width) ** 2))
    pixels = (rows.unsqueeze(2) * columns.unsqueeze(1)).flatten(1)
    if noisy:
        pixels = torch.where(torch.rand_like(pixels) < _WRONG, torch.rand_like(pixels), pixels)
    model = _VAE(144, 6)
    loader, held = _loader((pixels,), 64, noisy=noisy)
    return Task(model, _evidence, Adam(model.parameters(), lr=2e-3), loader, held)


class _Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU())
        self.projection = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x: Tensor) -> Tensor:
        return functional.normalize(self.projection(self.body(x)), dim=1)


def _contrasted(model: nn.Module, batch: Batch) -> Tensor:
    (x,) = batch
    views = [x * (torch.rand_like(x) > 0.3) + 0.3 * torch.randn_like(x) for _ in range(2)]
    z = model(torch.cat(views))
    similarity = (z @ z.T / 0.2).masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    return functional.cross_entropy(similarity, torch.arange(len(z)).roll(len(x)))


def _contrastive(noisy: bool) -> Task:
    things = torch.randn(_TRAIN + _HELD, 10) @ torch.randn(10, 48)
    things = things / things.std()
    if noisy:
        things = things + 0.3 * torch.randn_like(things)
    model = _Encoder()
    loader, held = _loader((things,), 64, noisy=noisy)
    # The loss depends on how many views there are to choose from: held ones as in training.
    size = 8 if noisy else 64
    held = [(each,) for (batch,) in held for each in batch.split(size)][: 256 // (size // 8)]
    return Task(model, _contrasted, Adam(model.parameters(), lr=2e-3), loader, held)


class _Pretrained(nn.Module):
    """A backbone that knows edges (Gabor filters) and a new head."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 9, 32), nn.ReLU(), nn.Linear(32, 8))
        down, across = torch.meshgrid(torch.arange(5.0) - 2, torch.arange(5.0) - 2, indexing="ij")
        with torch.no_grad():
            for number, kernel in enumerate(self.backbone[0].weight):
                angle = torch.tensor(number % 4 * torch.pi / 4)
                along = angle.cos() * across + angle.sin() * down
                frequency = 0.7 if number % 8 < 4 else 1.2
                kernel[0] = torch.sin(frequency * along + number // 8) / 4

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x))


def _finetuning(noisy: bool) -> Task:
    """The head learns twenty times as fast as the backbone."""
    images, labels = _stripes(_TRAIN + _HELD, 8, _SIZE)
    model = _Pretrained()
    labels = _mislabelled(labels, 8, noisy=noisy)
    loader, held = _loader((images, labels), 64, noisy=noisy)
    optimizer = AdamW(
        [
            {"params": model.head.parameters(), "lr": 2e-3},
            {"params": model.backbone.parameters(), "lr": 1e-4},
        ]
    )
    return Task(model, _classified, optimizer, loader, held)


def _bag_of_words(noisy: bool) -> Task:
    """Documents of 20 words; each of 5 topics prefers words of its own."""
    topics = (1.5 * torch.randn(5, 300)).softmax(1)
    labels = torch.randint(5, (_TRAIN + _HELD,))
    words = torch.multinomial(topics[labels], 20, replacement=True)
    model = nn.Sequential(nn.EmbeddingBag(300, 24), nn.ReLU(), nn.Linear(24, 5))
    labels = _mislabelled(labels, 5, noisy=noisy)
    loader, held = _loader((words, labels), 32, noisy=noisy)
    return Task(model, _classified, Adagrad(model.parameters(), lr=0.05), loader, held)


def _denoised(model: nn.Module, batch: Batch) -> Tensor:
    """The noise of a random level has to be told from the image under it."""
    (images,) = batch
    level = torch.rand(len(images), 1, 1, 1)
    noise = torch.randn_like(images)
    given = (1 - level).sqrt() * images + level.sqrt() * noise
    given = torch.cat((given, level.expand_as(images)), 1)
    return functional.mse_loss(model(given), noise)


def _denoiser(noisy: bool) -> Task:
    images, _ = _stripes(_TRAIN + _HELD, 8, _SIZE)
    model = nn.Sequential(
        nn.Conv2d(2, 12, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(12, 12, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(12, 1, 3, padding=1),
    )
    loader, held = _loader((_noised(images, noisy=noisy),), 32, noisy=noisy)
    return Task(model, _denoised, Adam(model.parameters(), lr=1e-3), loader, held)


class _Attentive(nn.Module):
    """A transformer encoder in bfloat16 autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(60, 24)
        self.block = nn.TransformerEncoderLayer(24, 4, 48, dropout=0.1, batch_first=True)
        self.head = nn.Linear(24, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.head(self.block(self.embed(tokens)).mean(1))


def _encoder(noisy: bool) -> Task:
    labels = torch.randint(6, (_TRAIN + _HELD,))
    tokens = torch.randint(60, (len(labels), 10))
    cues = 10 * labels[:, None] + torch.randint(10, tokens.shape)
    tokens = torch.where(torch.rand(tokens.shape) < 0.3, cues, tokens)
    model = _Attentive()
    labels = _mislabelled(labels, 6, noisy=noisy)
    loader, held = _loader((tokens, labels), 48, noisy=noisy)
    optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    return Task(model, _classified, optimizer, loader, held, max_norm=1.0)


WORKLOADS: dict[str, Callable[[bool], Task]] = {
    "tabular, Adam": partial(_tabular, optimizer=partial(Adam, lr=1e-3)),
    "tabular, SGD": partial(_tabular, optimizer=partial(SGD, lr=0.1)),
    "regression, Adam": partial(_regression, optimizer=partial(Adam, lr=3e-3)),
    "regression, SGD + momentum": partial(
        _regression, optimizer=partial(SGD, lr=0.02, momentum=0.9)
    ),
    "regression, RMSprop": partial(_regression, optimizer=partial(RMSprop, lr=1e-3)),
    "CNN + batch norm, SGD + momentum": _cnn,
    "ResNet, AdamW": _resnet,
    "LSTM, Adam, clipped": _lstm,
    "GRU tagger, Adam": _gru_tagger,
    "causal LM, AdamW, clipped": _causal_lm,
    "VAE, Adam": _vae,
    "contrastive, Adam": _contrastive,
    "fine-tuning, AdamW, two rates": _finetuning,
    "bag of words, Adagrad": _bag_of_words,
    "denoiser, Adam": _denoiser,
    "encoder, AdamW, bfloat16": _encoder,
}
UNSEEN = tuple(WORKLOADS)[-3:]  # on which nothing was chosen
