"""What looks odd in a curve and is none the less sound gets a note, and no finding."""

import numpy as np

from holter.diagnosis.rules.exploding_gradients import exploding_gradients
from holter.diagnosis.rules.loss_plateau import loss_plateau
from holter.diagnosis.rules.loss_spike import loss_spike
from holter.record import Event
from holter.record.events import PassBegan
from holter.record.findings import Finding, Normal
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, LR
from synthetic import run_of, said


def notes(rule, run):
    spoken = said(rule, run)
    assert not [each for each in spoken if isinstance(each, Finding)]
    return [each.summary for each in spoken if isinstance(each, Normal)]


def noisy(level, seed=0, size=0.01):
    return level * np.exp(size * np.random.default_rng(seed).standard_normal(len(level)))


def test_a_single_hard_batch():
    loss = noisy(np.linspace(1.0, 0.8, 400))
    loss[250] = 6.0
    (note,) = notes(loss_spike, run_of({LOSS: {"": loss}}))
    assert "1 of 400 losses" in note
    assert "step 250" in note


def test_no_note_where_nothing_stands_out():
    assert notes(loss_spike, run_of({LOSS: {"": noisy(np.linspace(1.0, 0.8, 400))}})) == []


def test_a_norm_that_rises_late_in_a_decay():
    steps = np.arange(400)
    rate = 0.5 * (1 + np.cos(np.pi * steps / 400))
    norm = noisy(np.where(steps < 250, 1.0, 1.0 + (steps - 250) / 100))
    loss = noisy(np.exp(-steps / 200) + 0.2)
    run = run_of({LOSS: {"": loss}, LR: {"group 0": rate}, GRAD_TOTAL_NORM: {"": norm}})
    (note,) = notes(exploding_gradients, run)
    assert "late in a decay" in note
    constant = run_of(
        {LOSS: {"": loss}, LR: {"group 0": 0 * rate + 0.1}, GRAD_TOTAL_NORM: {"": norm}}
    )
    assert notes(exploding_gradients, constant) == []


def test_stairs_at_the_edges_of_epochs():
    steps = np.arange(300)
    loss = noisy(2.0 - 0.25 * (steps // 50), size=0.005)
    passes = [Event(step, 0.0, PassBegan("loader 0")) for step in range(0, 300, 50)]
    found = notes(loss_plateau, run_of({LOSS: {"": loss}}, events=passes))
    assert any("every 50 steps" in note for note in found)
    smooth = noisy(2.0 - 0.005 * steps, size=0.005)
    found = notes(loss_plateau, run_of({LOSS: {"": smooth}}, events=passes))
    assert not any("every 50 steps" in note for note in found)
