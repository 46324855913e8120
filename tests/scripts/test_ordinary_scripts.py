"""`holter run` on ordinary scripts: it changes nothing, records the truth, and finds nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched import REGIMES, SCRIPTS, Twins

import holter
from holter._cli import main
from holter.record.events import ExceptionRaised, HolterFailed
from holter.record.signals import (
    AMP_SCALE,
    AMP_SKIPPED,
    DATA_BATCH_SIZE,
    GRAD_NORM,
    GRAD_TOTAL_NORM,
    LOSS,
    LR,
    VAL_LOSS,
)
from holter.reports import text

NOT_ORDINARY = {"exception", "interrupt", "ddp", "fsdp"}  # they end otherwise, or need a launcher
ARGUMENTS = {"argparse_script": ("moons", "--output-dir", "out/put", "--batch-size", "40")}

ORDINARY = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem not in NOT_ORDINARY)
LAUNCHES = [(name, *ARGUMENTS.get(name, ())) for name in ORDINARY] + [("workers", "--spawn")]
# One of each kind of loop is sampled in every test run; the others are in the exhaustive ones.
SAMPLED = (
    *("accumulation", "gan", "lbfgs", "lstm", "mlp_validation", "scaler", "workers"),
    "two_optimizers_one_backward",
)

# What the training loader of a script delivers for each step of an epoch.
BATCHES = {
    "accumulation": [64] * 5 + [30],
    "amp_bf16": [50] * 14,
    "argparse_script": [40] * 16,
    "finetune": [32] * 8,
    "hf_style": [16] * 25,
    "main_guard": [50] * 12,
    "mlp_validation": [64] * 12 + [32],
    "siamese_triplet": [60] * 10,
    "two_optimizers_one_backward": [64] * 8,
    "vae": [64] * 10,
    "workers": [40] * 12,
}

# Those of a few scripts, in the order of the model: plain, frozen, recurrent, and of two models.
PARAMETERS = {
    "scaler": ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"],
    "regression": ["0.weight", "0.bias", "2.weight", "2.bias"],
    "finetune": ["fc.weight", "fc.bias"],
    "lstm": [
        "encoder.weight",
        *(
            f"rnn.{kind}_l{n}"
            for n in (0, 1)
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ),
        "decoder.weight",
        "decoder.bias",
    ],
    "gan": [
        *(f"Generator.main.{n}.{kind}" for n in (0, 2) for kind in ("weight", "bias")),
        *(f"Discriminator.main.{n}.{kind}" for n in (0, 2, 4) for kind in ("weight", "bias")),
    ],
    "two_optimizers_one_backward": [
        f"{model}.{layer}.{kind}"
        for model, layers in (("Encoder", ("hidden", "latent")), ("Decoder", ("hidden", "out")))
        for layer in layers
        for kind in ("weight", "bias")
    ],
}


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(
            (launch, regime),
            id="-".join((" ".join(launch), regime)),
            marks=() if regime == "whole" or launch[0] in SAMPLED else pytest.mark.exhaustive,
        )
        for launch in LAUNCHES
        for regime in REGIMES
    ],
)
def recorded(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], str]:
    """A script's name and arguments, and how its steps are read: all of them, or a sample.

    What is cheap is read at every step in both. Session-wide, so that tests of one script stand
    together.
    """
    return request.param


@pytest.fixture
def launch(recorded: tuple[tuple[str, ...], str]) -> tuple[str, ...]:
    return recorded[0]


@pytest.fixture
def name(launch: tuple[str, ...]) -> str:
    return launch[0]


@pytest.fixture
def regime(recorded: tuple[tuple[str, ...], str]) -> str:
    return recorded[1]


@pytest.fixture
def twins(launch: tuple[str, ...], regime: str, both: Any) -> Twins:
    return both(*launch, regime=regime)


@pytest.fixture
def run(twins: Twins) -> holter.Run:
    return holter.Run.load(twins.run)


def test_there_are_ten_at_least() -> None:
    assert len(ORDINARY) >= 10


def test_the_script_runs_as_without_holter(twins: Twins, run: holter.Run) -> None:
    assert twins.plain.code == 0, twins.plain.err
    assert twins.watched.code == 0, twins.watched.err
    assert twins.watched.out == twins.plain.out
    report = text.render(run, holter.check(run))
    assert twins.watched.err == f"holter: recording to {twins.run}\n{twins.plain.err}{report}"


def test_results_are_bit_identical(twins: Twins) -> None:
    assert twins.truth["weights"]
    assert twins.watched_truth == twins.truth


def test_files_of_the_script_are_where_it_writes_them(twins: Twins) -> None:
    plain, watched = (_files(twins.run.parent / each) for each in ("plain", "watched"))
    assert watched == plain


def test_every_step_has_its_loss(twins: Twins, run: holter.Run) -> None:
    truths = _by_owner(twins.truth["loss"])
    assert sorted(run[LOSS]) == sorted(truths)
    for owner, truth in truths.items():
        series = run[LOSS][owner]
        assert series.steps.tolist() == _steps_of(owner, twins.truth)
        _assert_same(series.values, truth)


def test_gradient_norms_are_those_of_their_steps(
    regime: str, twins: Twins, run: holter.Run
) -> None:
    truths = _by_owner(twins.truth["grad_norm"])
    assert sorted(run[GRAD_TOTAL_NORM]) == sorted(truths)
    for owner, truth in truths.items():
        series = run[GRAD_TOTAL_NORM][owner]
        known = dict(zip(_steps_of(owner, twins.truth), truth, strict=True))
        if regime == "whole":
            assert series.steps.tolist() == list(known)
        _assert_same(series.values, [known[step] for step in series.steps.tolist()])


def test_learning_rates_are_those_of_the_steps(twins: Twins, run: holter.Run) -> None:
    skipped = set(twins.truth.get("skipped", ()))
    for owner, truth in _by_owner(twins.truth["lr"]).items():
        of_owner = [each for each in run[LR] if each.startswith(owner)]
        assert of_owner
        for each in of_owner:
            known = dict(zip(_steps_of(owner, twins.truth), truth, strict=True))
            series = run[LR][each]
            assert set(known) - skipped <= set(series.steps.tolist()) <= set(known)
            _assert_same(series.values, [known[step] for step in series.steps.tolist()])


def test_validation_losses_are_filed_under_the_step_before(twins: Twins, run: holter.Run) -> None:
    truth = twins.truth["val_loss"]
    if not truth:
        assert VAL_LOSS not in run
        return
    (series,) = run[VAL_LOSS].values()
    assert series.steps.tolist() == [max(done - 1, 0) for done, _ in truth]
    _assert_same(series.values, [loss for _, loss in truth])


def test_skipped_steps_are_those_that_were_skipped(twins: Twins, run: holter.Run) -> None:
    if "skipped" not in twins.truth:
        assert AMP_SKIPPED not in run
        return
    series = run[AMP_SKIPPED][""]
    assert twins.truth["skipped"]
    assert series.steps[series.values > 0].tolist() == twins.truth["skipped"]
    _assert_same(run[AMP_SCALE][""].values, twins.truth["scale"])


def test_parameters_have_their_names(name: str, run: holter.Run) -> None:
    names = [each for each in run[GRAD_NORM] if len(run[GRAD_NORM][each])]
    assert set(names) <= set(run.meta.parameters)
    if name in PARAMETERS:
        assert sorted(names) == sorted(PARAMETERS[name])


def test_gradients_of_parameters_make_up_the_total(twins: Twins, run: holter.Run) -> None:
    for owner, truth in _by_owner(twins.truth["grad_norm"]).items():
        series = [run[GRAD_NORM][each] for each in run[GRAD_NORM] if each.startswith(owner)]
        known = dict(zip(_steps_of(owner, twins.truth), truth, strict=True))
        squares: dict[int, float] = {}
        for each in series:
            for step, value in zip(each.steps.tolist(), each.values.tolist(), strict=True):
                if step in known:  # a step of another optimizer may leave gradients here too
                    squares[step] = squares.get(step, 0.0) + value**2
        _assert_same(np.sqrt(list(squares.values())), [known[step] for step in squares])


def test_batches_are_those_of_the_training_loader(name: str, twins: Twins, run: holter.Run) -> None:
    if name not in BATCHES:
        assert DATA_BATCH_SIZE not in run
        return
    (series,) = run[DATA_BATCH_SIZE].values()
    epoch = BATCHES[name]
    epochs, rest = divmod(run.steps, len(epoch))
    assert (epochs > 0, rest) == (True, 0)
    assert series.steps.tolist() == list(range(run.steps))
    assert series.values.tolist() == epoch * epochs


def test_meta_tells_how_the_run_was_made(
    launch: tuple[str, ...], twins: Twins, run: holter.Run
) -> None:
    meta = json.loads((twins.run / "meta.json").read_text())
    name, *arguments = launch
    assert meta["command"] == [str(SCRIPTS / f"{name}.py"), *arguments]
    assert meta["folder"] == str(twins.run.parent / "watched")
    assert meta["git"] is None  # nothing is committed there; test_bisect.py has a repository
    assert {"holter", "torch", "numpy"} <= set(meta["versions"])
    assert meta["versions"]["holter"] == holter.__version__
    assert meta["variables"]["OMP_NUM_THREADS"] == "1"
    assert isinstance(meta["seed"], int)
    assert meta["model"]
    assert all(each["parameters"] >= each["trainable"] > 0 for each in meta["model"])
    assert len(meta["optimizers"]) == len(_by_owner(twins.truth["lr"]))
    assert meta["status"] == "finished"
    assert (
        meta["steps"]
        == run.steps
        == 1 + max(_steps_of(owner, twins.truth)[-1] for owner in _by_owner(twins.truth["loss"]))
    )
    assert meta["duration"] > 0
    assert meta["notes"] == []


def test_nothing_is_found(
    twins: Twins, run: holter.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    checkup = holter.check(run)
    assert checkup.findings == ()  # those of preview rules are among them
    assert len(checkup.clear) >= 8
    assert main(["check", str(twins.run), "--fail-on", "info"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("holter: ")
    assert "no problem found" in " ".join(shown.split())


def test_nothing_of_holter_failed(run: holter.Run) -> None:
    assert [*run.events_of(HolterFailed), *run.events_of(ExceptionRaised)] == []


def _by_owner(truth: Any) -> Mapping[str, list[float]]:
    """A script with one optimizer writes a list, one with several a list for each."""
    return truth if isinstance(truth, dict) else {"": truth}


def _steps_of(owner: str, truth: Mapping[str, Any]) -> list[int]:
    """The steps of an optimizer: every one, or every other where two take turns, as in a GAN."""
    losses = _by_owner(truth["loss"])
    if len(losses) == 1 or len({*map(tuple, losses.values())}) == 1:  # one backward serves all
        return list(range(len(losses[owner])))
    place, count = list(losses).index(owner), len(losses)
    return list(range(place, count * len(losses[owner]), count))


def _assert_same(values: Any, truth: Any) -> None:
    recorded, expected = np.asarray(values, np.float64), np.asarray(truth, np.float64)
    assert len(recorded) == len(expected)
    finite = np.isfinite(expected)
    assert (np.isfinite(recorded) == finite).all()
    np.testing.assert_allclose(recorded[finite], expected[finite], rtol=1e-4, atol=1e-7)


def _files(folder: Path) -> list[tuple[str, bytes]]:
    return sorted(
        (str(path.relative_to(folder)), path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    )
