"""Train and eval mode when the step's backward begins."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.events import ModeChanged
from holter.record.signals import MODE_EVAL_FRACTION, MODE_TRAINING
from watching.collectors.trainings import values, watching


def train(path, model, prepare=lambda model: None, steps=1):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    with watching(path, model, optimizer):
        for _ in range(steps):
            prepare(model)
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
    return Run.load(path)


def layers(*middle):
    return nn.Sequential(nn.Linear(3, 3), *middle, nn.Linear(3, 1))


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (layers(nn.Dropout(0.5)), 1.0),
        (layers(nn.BatchNorm1d(3), nn.Dropout(0.5)), 1.0),
        (layers(nn.Dropout(0.0)), None),
        (layers(nn.BatchNorm1d(3, track_running_stats=False)), None),
        (layers(nn.LayerNorm(3)), None),
        (layers(nn.BatchNorm1d(3, affine=False)), 1.0),
    ],
    ids=["dropout", "both", "p=0", "no running stats", "layer norm", "not affine"],
)
def test_what_minds_the_mode(tmp_path, model, share):
    run = train(tmp_path / "run", model, nn.Module.eval)
    assert values(run, MODE_TRAINING, "Sequential") == [0]
    if share is None:
        assert MODE_EVAL_FRACTION not in run
    else:
        assert values(run, MODE_EVAL_FRACTION, "Sequential") == [share]


def test_train_mode(tmp_path):
    run = train(tmp_path / "run", layers(nn.Dropout(0.5)), nn.Module.train, 2)
    assert values(run, MODE_TRAINING, "Sequential") == [1, 1]
    assert values(run, MODE_EVAL_FRACTION, "Sequential") == [0, 0]


def test_frozen_batch_norm_in_eval_mode_is_excused(tmp_path):
    model = layers(nn.BatchNorm1d(3), nn.Dropout(0.1))
    model[1].requires_grad_(False)
    run = train(tmp_path / "run", model, lambda m: m[1].eval())
    assert values(run, MODE_EVAL_FRACTION, "Sequential") == [0]


def test_a_part_in_eval_mode(tmp_path):
    model = layers(nn.BatchNorm1d(3), nn.Dropout(0.1))
    run = train(tmp_path / "run", model, lambda m: m[1].eval())
    assert values(run, MODE_TRAINING, "Sequential") == [1]
    assert values(run, MODE_EVAL_FRACTION, "Sequential") == [0.5]


def test_functional_dropout_cannot_be_seen(tmp_path):
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(3, 1)

        def forward(self, x):
            return self.last(functional.dropout(x, 0.5, self.training))

    run = train(tmp_path / "run", Functional(), nn.Module.eval)
    assert values(run, MODE_TRAINING, "Functional") == [0]
    assert MODE_EVAL_FRACTION not in run


def test_evaluation_between_steps_does_not_count(tmp_path):
    model = layers(nn.Dropout(0.5))

    def evaluate(model):
        model.eval()
        with torch.no_grad():
            model(torch.ones(1, 3))
        model.train()

    run = train(tmp_path / "run", model, evaluate, 3)
    assert values(run, MODE_TRAINING, "Sequential") == [1, 1, 1]
    assert [event.what.training for event in run.events_of(ModeChanged)][-2:] == [False, True]


def test_unfreezing_later_ends_the_excuse(tmp_path):
    model = layers(nn.BatchNorm1d(3))
    model[1].requires_grad_(False).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(tmp_path / "run", model, optimizer):
        for number in range(4):
            if number == 2:
                model[1].requires_grad_(True)
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
    assert values(Run.load(tmp_path / "run"), MODE_EVAL_FRACTION, "Sequential")[-1] == 1


def test_steps_of_another_optimizer_have_no_mode_of_this_model(tmp_path):
    """A probe that is trained while the encoder is in eval mode."""
    encoder, probe = layers(nn.Dropout(0.5)), nn.Linear(1, 2)
    optimizers = {
        "encoder": torch.optim.SGD(encoder.parameters(), lr=0.1),
        "probe": torch.optim.SGD(probe.parameters(), lr=0.1),
    }
    with watching(tmp_path / "run", {"encoder": encoder, "probe": probe}, optimizers):
        for name in ("encoder", "probe", "encoder", "probe"):
            encoder.train(name == "encoder")
            features = encoder(torch.randn(4, 3))
            outputs = features if name == "encoder" else probe(features.detach())
            optimizers[name].zero_grad()
            outputs.sum().backward()
            optimizers[name].step()
    modes = Run.load(tmp_path / "run")[MODE_TRAINING]
    assert (modes["encoder"].steps.tolist(), modes["encoder"].values.tolist()) == ([0, 2], [1, 1])
    assert modes["probe"].steps.tolist() == [1, 3]
