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


def test_shifted_targets(tmp_path):
    run = record(tmp_path / "run", Language(), lambda tokens: tokens.roll(-1, 1))
    assert max(values(run, TARGET_INPUT_MATCH, "cross_entropy")) < 0.5


def test_shapes_differ(tmp_path):
    run = record(tmp_path / "run", Language(), lambda tokens: tokens[:, 1:])
    assert TARGET_INPUT_MATCH not in run


def test_labels_of_another_kind_are_no_copies(tmp_path):
    run = record(tmp_path / "run", Language(answers=12), torch.clone)
    assert TARGET_INPUT_MATCH not in run
