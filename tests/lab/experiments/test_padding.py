from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter import Run
from holter.diagnosis.engine import Checkup
from holter.lab.experiments.padding import padding
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.findings import Confidence
from holter.record.signals import PADDING_CHANGE, PADDING_COUNTED, PADDING_DECISIONS
from lab.experiments.trainings import (
    HEALTHY,
    Causal,
    Encoder,
    Tagger,
    adam,
    checked,
    loader,
    sentences,
    tag,
    tagged,
    text,
)


def checkup(setup: Setup, folder: Path) -> Checkup:
    return checked("padding", "leaking-padding", setup, folder)


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    said = checkup(HEALTHY[kind](), tmp_path / "run")
    assert said.findings == ()
    assert bool(said.clear) is ("padded" in kind or kind in {"tagger", "in_autocast"})


def classified(model: nn.Module) -> Setup:
    torch.manual_seed(0)
    tokens, _, y = sentences()
    return Setup.of(model, adam(model), nn.CrossEntropyLoss(), loader(tokens, y))


@pytest.mark.parametrize(
    "model",
    [
        lambda: Encoder(masked=False),
        lambda: Encoder(pooled=False),
        lambda: Encoder(masked=False, pooled=False),
    ],
    ids=["attention", "mean", "both"],
)
def test_finds_attention_to_padding_and_means_over_it(
    model: Callable[[], nn.Module], tmp_path: Path
) -> None:
    (finding,) = checkup(classified(model()), tmp_path / "run").findings
    assert finding.confidence is Confidence.HINT  # all batches are padded to the same length
    assert finding.evidence[0].signal is PADDING_CHANGE


def cut_to_the_longest(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    tokens, y = (torch.stack(each) for each in zip(*samples, strict=True))
    return tokens[:, : int((tokens != 0).sum(1).max())], y


def test_batches_of_several_lengths_make_it_likely(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokens, _, y = sentences()
    model = Encoder(masked=False)
    batches = loader(tokens, y, batch=3, collate_fn=cut_to_the_longest)
    setup = Setup.of(model, adam(model), nn.CrossEntropyLoss(), batches)
    (finding,) = checkup(setup, tmp_path / "run").findings
    assert finding.confidence is Confidence.LIKELY


class Translator(nn.Module):
    """A decoder over the states of an encoder that skips padding, until the target has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 12, padding_idx=0)
        self.head = nn.Linear(24, 30)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        real = (source != 0)[..., None]
        memory = (self.embed(source) * real).sum(1) / real.sum(1)
        late = (target == 0)[..., None] * source.shape[1]  # what no target trains
        states = self.embed(target) + late
        return self.head(torch.cat((states, memory[:, None].expand_as(states)), 2))


def test_outputs_that_no_target_scores_may_depend_on_padding(tmp_path: Path) -> None:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        source, target = batch
        scores = model(source, target[:, :-1]).transpose(1, 2)
        return functional.cross_entropy(scores, target[:, 1:], ignore_index=0)

    torch.manual_seed(0)
    source, _, _ = sentences()
    target = torch.randint(1, 30, (len(source), 9))
    target[torch.arange(9) >= torch.randint(3, 10, (len(source), 1))] = 0
    model = Translator()
    said = checkup(Setup.of(model, adam(model), loss, loader(source, target)), tmp_path / "run")
    assert said.findings == ()
    assert said.clear


class Pooled(nn.Module):
    """Tokens, a layer over (samples, positions, features), and something that makes them one."""

    def __init__(self, layer: nn.Module, pool: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 12, padding_idx=0)
        self.layer, self.head, self.pool = layer, nn.Linear(12, 4), pool

    def forward(self, tokens: Tensor) -> Tensor:
        states = self.layer(self.embed(tokens))
        states = states[0] if isinstance(states, tuple) else states
        return self.head(self.pool(states, (tokens != 0).sum(1)))


def last_real(x: Tensor, lengths: Tensor) -> Tensor:
    return x[torch.arange(len(x)), lengths - 1]


class OverTime(nn.Conv1d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).relu().transpose(1, 2)


@pytest.mark.parametrize(
    ("layer", "pool", "leaks"),
    [
        (nn.Identity(), lambda x, lengths: x.sum(1) / lengths[:, None], False),
        (nn.Identity(), lambda x, lengths: x.mean(1), True),
        (nn.LSTM(12, 12, batch_first=True), last_real, False),
        (nn.LSTM(12, 12, batch_first=True), lambda x, lengths: x[:, -1], True),
        (nn.GRU(12, 6, batch_first=True, bidirectional=True), last_real, True),
        (OverTime(12, 12, 3, padding=1), lambda x, lengths: x.amax(1), False),
    ],
    ids=["sum of vectors", "mean", "last real state", "last state", "both ways", "text cnn"],
)
def test_ways_to_make_one_of_many(
    layer: nn.Module, pool: Callable[[Tensor, Tensor], Tensor], leaks: bool, tmp_path: Path
) -> None:
    said = checkup(classified(Pooled(layer, pool)), tmp_path / "run")
    assert bool(said.findings) is leaks
    assert bool(said.clear or said.normal) is not leaks


def test_a_tagger_that_does_not_pack(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Tagger(packed=False)
    assert checkup(Setup.of(model, adam(model), tag, tagged()), tmp_path / "run").findings


def test_a_tagger_that_learned_to_ignore_padding_decides_alike(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Tagger(packed=False)
    setup = Setup.of(model, adam(model, 1e-2), tag, tagged())
    shares = []
    for steps in (3, 200):
        with Lab(tmp_path / str(steps)) as lab:
            padding.function(setup, lab, steps=steps)
        recorded = Run.load(tmp_path / str(steps))[PADDING_DECISIONS]
        shares.append(sum(float(series.values[-1]) for series in recorded.values()))
    assert shares[0] > shares[1] == 0


def continued(*, ignored: bool) -> Setup:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        x, y = batch[0][:, :-1], batch[0][:, 1:].clone()
        if ignored:
            y[y == 0] = -100
        return functional.cross_entropy(model(x).transpose(1, 2), y)

    torch.manual_seed(0)
    tokens = text() + 1
    tokens[torch.arange(13) >= torch.randint(5, 14, (256, 1))] = 0
    model = Causal(21)
    model.embed.padding_idx = 0
    return Setup.of(model, adam(model), loss, loader(tokens))


def test_a_causal_model_with_padding_at_the_end_does_not_leak(tmp_path: Path) -> None:
    said = checkup(continued(ignored=True), tmp_path / "run")
    assert said.findings == ()
    assert said.clear


def test_padding_that_the_loss_counts_is_a_hint(tmp_path: Path) -> None:
    (finding,) = checkup(continued(ignored=False), tmp_path / "run").findings
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].signal is PADDING_COUNTED


class OfOneLength(Encoder):
    """Positions are learned for one length: there is no model of shorter sequences."""

    def __init__(self, **how: bool) -> None:
        super().__init__(**how)
        self.position = nn.Parameter(torch.randn(12, 16))

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        real = tokens != 0 if mask is None else mask.bool()
        x = self.embed(tokens) + self.position
        x = self.block(x, src_key_padding_mask=~real if self.masked else None)
        return self.head((x * real[..., None]).sum(1) / real.sum(1, keepdim=True))


def test_one_length_only(tmp_path: Path) -> None:
    said = checkup(classified(OfOneLength()), tmp_path / "no mask")
    assert "one length" in said.not_examined[0].because

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0], mask=batch[1]), batch[2])

    tokens, _, y = sentences()
    for masked in (True, False):
        model = OfOneLength(masked=masked)
        train = loader(tokens, (tokens != 0).long(), y)
        said = checkup(Setup.of(model, adam(model), loss, train), tmp_path / str(masked))
        assert bool(said.clear) is masked
        assert bool(said.findings) is not masked


def test_padded_values_with_lengths(tmp_path: Path) -> None:
    class Values(nn.Module):
        def __init__(self, pooled: bool) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(3, 16), nn.Linear(16, 1)
            self.pooled = pooled

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            h = self.body(x).relu()
            real = torch.arange(x.shape[1]) < lengths[:, None]
            return self.head((h * real[..., None]).sum(1) if self.pooled else h.sum(1))

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.mse_loss(model(batch[0], batch[1]), batch[2])

    torch.manual_seed(0)
    lengths = torch.randint(3, 11, (128,))
    x = torch.randn(128, 10, 3) * (torch.arange(10) < lengths[:, None])[..., None]
    for pooled in (True, False):
        model = Values(pooled)
        train = loader(x, lengths, x.sum((1, 2))[:, None])
        said = checkup(Setup.of(model, adam(model), loss, train), tmp_path / str(pooled))
        assert bool(said.clear) is pooled
        assert bool(said.findings) is not pooled
