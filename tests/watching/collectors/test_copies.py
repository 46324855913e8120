"""Targets that are the model's own input."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.signals import TARGET_INPUT_MATCH
from watching.collectors.trainings import values, watching


class Language(nn.Module):
    """Tokens and positions; the loss inside if targets are given."""

    def __init__(self, words=11, answers=11):
        super().__init__()
        self.words, self.places = nn.Embedding(words, 4), nn.Embedding(6, 4)
        self.head = nn.Linear(4, answers)

    def forward(self, tokens, targets=None):
        places = torch.arange(tokens.shape[1]).expand_as(tokens)
        logits = self.head(self.words(tokens) + self.places(places))
        if targets is None:
            return logits
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def record(path, model, targets_of, *, inside=False, ignored=None):
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(path, model, optimizer):
        for _ in range(3):
            tokens = torch.randint(1, 11, (3, 6))
            targets = targets_of(tokens)
            if ignored is not None:
                targets = torch.where(torch.rand(3, 6) < ignored, -100, targets)
            optimizer.zero_grad()
            if inside:
                model(tokens=tokens, targets=targets).backward()
            else:
                logits = model(tokens)[:, : targets.shape[1]]
                functional.cross_entropy(logits.transpose(1, 2), targets).backward()
            optimizer.step()
    run = Run.load(path)
    assert run.meta.notes == ()
    return run


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("ignored", [None, 0.5])
def test_targets_that_were_not_shifted(tmp_path, inside, ignored):
    run = record(tmp_path / "run", Language(), torch.clone, inside=inside, ignored=ignored)
    assert values(run, TARGET_INPUT_MATCH, "cross_entropy") == [1, 1, 1]


class Decoder(nn.Module):
    """Reads one token at a time, as a recurrent decoder does."""

    def __init__(self):
        super().__init__()
        self.words, self.cell = nn.Embedding(11, 4), nn.GRUCell(4, 5)
        self.head = nn.Linear(5, 11)

    def forward(self, tokens):
        state, logits = torch.zeros(len(tokens), 5), []
        for time in range(tokens.shape[1]):
            state = self.cell(self.words(tokens[:, time]), state)
            logits.append(self.head(state))
        return torch.stack(logits, 1)


@pytest.mark.parametrize("shift", [0, 1])
def test_a_decoder_that_reads_a_token_at_a_time(tmp_path, shift):
    run = record(tmp_path / "run", Decoder(), lambda tokens: tokens.roll(-shift, 1))
    matches = values(run, TARGET_INPUT_MATCH, "cross_entropy")
    assert matches == [1, 1, 1] if not shift else max(matches) < 0.5


def test_shifted_targets(tmp_path):
    run = record(tmp_path / "run", Language(), lambda tokens: tokens.roll(-1, 1))
    assert max(values(run, TARGET_INPUT_MATCH, "cross_entropy")) < 0.5


def test_shapes_differ(tmp_path):
    run = record(tmp_path / "run", Language(), lambda tokens: tokens[:, 1:])
    assert TARGET_INPUT_MATCH not in run


def test_labels_of_another_kind_are_no_copies(tmp_path):
    run = record(tmp_path / "run", Language(answers=12), torch.clone)
    assert TARGET_INPUT_MATCH not in run


class Forecast(nn.Module):
    """Two variables of a series; the first is predicted, at each position or at the last ones."""

    def __init__(self, last=None, *, convolves=False):
        super().__init__()
        self.last, self.convolves = last, convolves
        self.head = nn.Linear(2, 1)

    def forward(self, series):
        rows = series.transpose(1, 2) if self.convolves else series
        answers = self.head(rows).squeeze(-1)
        return answers if self.last is None else answers[:, -self.last :]


def forecast(path, targets_of, model=None, flat=False, named=False):
    model = model or Forecast()
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(path, model, optimizer):
        for _ in range(3):
            whole = torch.randn(4, 9, 2)
            series, targets = whole[:, :-1], targets_of(whole)
            given = series.transpose(1, 2) if model.convolves else series
            optimizer.zero_grad()
            predictions = model(series=given) if named else model(given)
            if flat:
                predictions, targets = predictions.flatten(), targets.flatten()
            functional.mse_loss(predictions, targets).backward()
            optimizer.step()
    run = Run.load(path)
    assert run.meta.notes == ()
    return values(run, TARGET_INPUT_MATCH, "mse_loss")


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("convolves", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_forecast_of_what_it_is_given(tmp_path, flat, convolves, named):
    found = forecast(
        tmp_path / "run", lambda x: x[:, :-1, 0], Forecast(convolves=convolves), flat, named
    )
    assert found == [1, 1, 1]


@pytest.mark.parametrize("last", [1, 3])
def test_a_forecast_of_the_last_positions_that_it_is_given(tmp_path, last):
    found = forecast(tmp_path / "run", lambda x: x[:, -1 - last : -1, 0], Forecast(last))
    assert found == [1, 1, 1]


@pytest.mark.parametrize(
    "targets_of", [lambda x: x[:, 1:, 0], lambda x: torch.zeros(4, 8), lambda x: x[:, :-1].mean(2)]
)
def test_a_forecast_of_what_follows(tmp_path, targets_of):
    assert max(forecast(tmp_path / "run", targets_of)) < 0.1


def test_an_autoencoder_of_a_series(tmp_path):
    model = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            series = torch.randn(4, 8, 2)
            functional.mse_loss(model(series), series).backward()
            optimizer.step()
    assert TARGET_INPUT_MATCH not in Run.load(tmp_path / "run")
