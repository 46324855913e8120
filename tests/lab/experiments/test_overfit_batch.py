import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter import check
from holter.diagnosis.engine import Checkup
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record import Run
from holter.record.events import ExperimentFailed, TrialFailed
from holter.record.findings import Confidence, Finding
from holter.record.signals import (
    OVERFIT_CONSTANT,
    OVERFIT_EXCHANGED,
    OVERFIT_FLOOR,
    OVERFIT_FREE_FLOOR,
    OVERFIT_LOSS,
    OVERFIT_NOISE,
    OVERFIT_QUIET,
    OVERFIT_SAMPLES,
    Signal,
)
from lab.experiments.trainings import HEALTHY, adam, loader, points, text

AS_IT_IS = "unchanged"


def made(setup: Setup, folder: Path, *, separable: bool = True, **options: Any) -> Run:
    """The run of the experiment; without `separable` samples, a trial on two of them may fail."""
    found = run("overfit-batch", setup, folder / "run", **options)
    assert not found.events_of(ExperimentFailed)
    failed = {event.what.trial for event in found.events_of(TrialFailed)}
    assert failed <= (set() if separable else {"2 samples"})
    return found


def said(setup: Setup, folder: Path, **options: Any) -> Checkup:
    checkup = check(made(setup, folder, **options), select=["unfittable-batch"])
    assert not [each for each in checkup.not_examined if "itself failed" in each.because]
    return checkup


def finding(setup: Setup, folder: Path) -> Finding:
    (found,) = said(setup, folder, steps=150).findings
    return found


def one(found: Run, signal: Signal, trial: str = AS_IT_IS) -> float:
    return float(found[signal][trial].values[-1])


def mlp(
    *tail: nn.Module, inputs: int = 8, outputs: int = 4, act: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 48), act(), nn.Linear(48, outputs), *tail)


def classifier(
    model: nn.Module | None = None,
    *,
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = lambda model: adam(model, 3e-3),
    loss: Any = None,
    inputs: Callable[[Tensor], Tensor] = lambda x: x,
    labels: Callable[[Tensor], Tensor] = lambda y: y,
    max_norm: float | None = None,
    batch: int = 16,
) -> Setup:
    torch.manual_seed(0)
    model = mlp() if model is None else model
    x, y = points(128)
    train = loader(inputs(x), labels(y), batch=batch)
    loss = nn.CrossEntropyLoss() if loss is None else loss
    return Setup.of(model, optimizer(model), loss, train, max_norm=max_norm)


def regressor(model: nn.Module | None = None, *, loss: Any = None, flat: bool = False) -> Setup:
    torch.manual_seed(0)
    model = mlp(outputs=1) if model is None else model
    x = torch.randn(128, 8)
    y = torch.sin(x[:, :1]) - x[:, 1:2]
    train = loader(x, y[:, 0] if flat else y)
    return Setup.of(model, adam(model, 3e-3), nn.MSELoss() if loss is None else loss, train)


def sgd(rate: float, **more: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.SGD(model.parameters(), rate, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_trainings(kind: str, tmp_path: Path) -> None:
    setup, separable = HEALTHY[kind](), kind != "graph"  # edges refer to all nodes
    checkup = said(setup, tmp_path, separable=separable, steps=100, seconds=3.0)
    assert checkup.findings == ()


def soft(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch[0]), functional.one_hot(batch[1], 4) * 0.6 + 0.1)


def mixed_up(model: nn.Module, batch: Any) -> Tensor:
    x, y = batch
    share, other = float(torch.rand(())), torch.randperm(len(x))
    target = functional.one_hot(y, 4).float()
    target = share * target + (1 - share) * target[other]
    return functional.cross_entropy(model(share * x + (1 - share) * x[other]), target)


def noisy_targets(model: nn.Module, batch: Any) -> Tensor:
    return functional.mse_loss(model(batch[0]), batch[1] + 0.5 * torch.randn_like(batch[1]))


def two_terms(model: nn.Module, batch: Any) -> Tensor:
    penalty = sum(each.square().sum() for each in model.parameters())
    return functional.cross_entropy(model(batch[0]), batch[1]) + 1e-3 * penalty


FITTING = {
    "adam": classifier,
    "sgd": lambda: classifier(optimizer=sgd(0.1, momentum=0.9)),
    "slow sgd": lambda: classifier(optimizer=sgd(0.02)),
    "smoothing": lambda: classifier(loss=nn.CrossEntropyLoss(label_smoothing=0.1)),
    "weights": lambda: classifier(loss=nn.CrossEntropyLoss(torch.tensor([1.0, 9, 0.1, 2]))),
    "soft targets": lambda: classifier(loss=soft),
    "mixup in the step": lambda: classifier(loss=mixed_up),
    "a penalty beside it": lambda: classifier(loss=two_terms),
    "mse": regressor,
    "mse as a sum": lambda: regressor(loss=nn.MSELoss(reduction="sum")),
    "mse by hand": lambda: regressor(loss=lambda m, b: (m(b[0]) - b[1]).square().mean()),
    "huber": lambda: regressor(loss=nn.HuberLoss()),
    "noise in targets": lambda: regressor(loss=noisy_targets),
    "log softmax": lambda: classifier(mlp(nn.LogSoftmax(1)), loss=nn.NLLLoss()),
    "dropout": lambda: classifier(mlp(nn.Dropout(0.3))),
    "batch norm of 4": lambda: classifier(
        nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)), batch=4
    ),
    "same inputs, other labels": lambda: classifier(inputs=lambda x: x[:8].repeat(16, 1)),
    "clipped to 1": lambda: classifier(optimizer=sgd(0.3), max_norm=1.0),
    "decay": lambda: classifier(
        optimizer=lambda m: torch.optim.AdamW(m.parameters(), 3e-3, weight_decay=0.1)
    ),
}


@pytest.mark.parametrize("kind", FITTING)
def test_samples_are_learned_down_to_their_floor(kind: str, tmp_path: Path) -> None:
    checkup = said(FITTING[kind](), tmp_path)
    assert checkup.findings == ()
    assert checkup.clear[0].because


def test_the_floor_of_label_smoothing(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = points(128, classes=10)
    model = mlp(outputs=10)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    found = made(Setup.of(model, adam(model, 3e-3), loss, loader(x, y)), tmp_path)
    assert one(found, OVERFIT_FLOOR) == pytest.approx(0.500, abs=1e-3)
    assert one(found, OVERFIT_FLOOR) < one(found, OVERFIT_LOSS) < 0.55
    assert one(found, OVERFIT_CONSTANT) > 1.5
    assert one(found, OVERFIT_EXCHANGED) > 2
    assert list(found[OVERFIT_LOSS]) == [AS_IT_IS]
    (clear,) = check(found, select=["unfittable-batch"]).clear
    assert "floor 0.5" in clear.because


def test_a_loss_by_hand_is_measured_against_free_predictions(tmp_path: Path) -> None:
    found = made(FITTING["mse by hand"](), tmp_path)
    assert OVERFIT_FLOOR not in found
    assert one(found, OVERFIT_FREE_FLOOR) == pytest.approx(0, abs=1e-6)


def test_noise_in_targets_has_its_variance_for_floor(tmp_path: Path) -> None:
    found = made(FITTING["noise in targets"](), tmp_path)
    assert one(found, OVERFIT_FLOOR) == pytest.approx(0.25, rel=0.3)
    assert one(found, OVERFIT_NOISE) > 0


def test_dropout_is_off_when_it_is_asked_what_is_known(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.6), nn.Linear(64, 4))
    found = made(classifier(model), tmp_path)
    assert one(found, OVERFIT_NOISE) > 0
    assert one(found, OVERFIT_NOISE, "dropout off") == 0
    assert one(found, OVERFIT_QUIET) < 0.1


@pytest.mark.parametrize(("samples", "count"), [(2, 2), (5, 5), (32, 16)])
def test_samples_are_taken_from_a_batch(samples: int, count: int, tmp_path: Path) -> None:
    found = made(classifier(), tmp_path, samples=samples)
    assert one(found, OVERFIT_SAMPLES) == count


def test_a_schedule_that_begins_at_0_is_taken_at_its_peak(tmp_path: Path) -> None:
    setup = classifier()
    torch.optim.lr_scheduler.LambdaLR(setup.optimizers[0], lambda step: step / 1000)
    assert setup.optimizers[0].param_groups[0]["lr"] == 0
    assert said(setup, tmp_path).clear[0].because


ABSTAINING = {
    "small rate": lambda: classifier(optimizer=lambda m: adam(m, 1e-5)),
    "one label": lambda: classifier(labels=torch.zeros_like),
    "not finite at once": lambda: classifier(inputs=lambda x: x * torch.nan),
    "other sign": lambda: regressor(loss=lambda m, b: -functional.mse_loss(m(b[0]), b[1])),
    "labels drawn anew": lambda: classifier(
        loss=lambda m, b: functional.cross_entropy(m(b[0]), torch.randint(4, (len(b[1]),)))
    ),
}


@pytest.mark.parametrize("kind", ABSTAINING)
def test_does_not_judge_what_cannot_be_told(kind: str, tmp_path: Path) -> None:
    checkup = said(ABSTAINING[kind](), tmp_path, steps=150)
    assert checkup.findings == ()
    assert checkup.not_examined


def test_a_model_that_is_small_on_purpose_is_normal(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 2)
    model = nn.Linear(2, 2)
    train = loader(x, (x[:, 0] * x[:, 1] > 0).long())
    setup = Setup.of(model, adam(model, 0.1), nn.CrossEntropyLoss(), train)
    checkup = said(setup, tmp_path, samples=16, steps=100)
    assert checkup.findings == ()
    assert checkup.normal


def test_noise_of_the_step_is_normal(tmp_path: Path) -> None:
    def denoising(model: nn.Module, batch: Any) -> Tensor:
        noise = torch.randn_like(batch[0])
        return functional.mse_loss(model(batch[0] + noise), noise)

    setup = classifier(mlp(outputs=8), loss=denoising)
    checkup = said(setup, tmp_path)
    assert checkup.findings == ()
    assert checkup.normal


def test_closures_are_not_recognised(tmp_path: Path) -> None:
    setup = classifier(optimizer=lambda m: torch.optim.LBFGS(m.parameters()))
    assert said(setup, tmp_path).not_examined


def zeroed(model: nn.Module) -> nn.Module:
    for each in model.parameters():
        nn.init.zeros_(each)
    return model


class Blind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(torch.zeros_like(x))


def dropping() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 48), nn.ReLU(), nn.Dropout(0.95),
        nn.Linear(48, 48), nn.ReLU(), nn.Dropout(0.95), nn.Linear(48, 4),
    )  # fmt: skip


UNFITTING: dict[str, tuple[Callable[[], Setup], str]] = {
    "softmax twice": (
        lambda: classifier(mlp(nn.Softmax(1))),
        "logits in place of probabilities",
    ),
    "sigmoid twice": (
        lambda: classifier(
            mlp(nn.Sigmoid()),
            loss=nn.BCEWithLogitsLoss(),
            labels=lambda y: functional.one_hot(y, 4).float(),
        ),
        "logits in place of probabilities",
    ),
    "broadcast": (lambda: regressor(flat=True), "predictions in the shape of the targets"),
    "positive outputs": (
        lambda: regressor(mlp(nn.ReLU(), outputs=1)),
        "without the last ReLU",
    ),
    "softmax twice by hand": (
        lambda: classifier(
            mlp(nn.Softmax(1)),
            loss=lambda m, b: -m(b[0]).log_softmax(1).gather(1, b[1][:, None]).mean(),
        ),
        "without the last Softmax",
    ),
    "dropout": (lambda: classifier(dropping()), "dropout off"),
    "clipping": (lambda: classifier(optimizer=sgd(0.1), max_norm=1e-5), "clipping off"),
    "decay": (lambda: classifier(optimizer=sgd(0.1, weight_decay=1.0)), "weight decay 0"),
    "zero weights": (lambda: classifier(zeroed(mlp())), "weights re-initialised"),
    "inputs alike": (lambda: classifier(inputs=lambda x: 1e-9 * x), "inputs standardised"),
    "low rate": (
        lambda: classifier(optimizer=lambda m: adam(m, 1e-7)),
        "learning rate x 10000",
    ),
    "high rate": (lambda: classifier(optimizer=sgd(50.0)), "learning rate x 0.01"),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("kind", UNFITTING)
def test_the_first_change_that_fits_names_the_cause(kind: str, tmp_path: Path) -> None:
    make, trial = UNFITTING[kind]
    found = finding(make(), tmp_path)
    assert found.confidence is Confidence.LIKELY
    assert [each.owner for each in found.evidence[:2]] == [AS_IT_IS, trial]
    assert found.fix


IMMOVABLE: dict[str, Callable[[], Setup]] = {
    "frozen": lambda: classifier(mlp().requires_grad_(False)),
    "detached": lambda: classifier(
        loss=lambda m, b: functional.cross_entropy(m(b[0]).detach(), b[1])
    ),
    "another model's optimizer": lambda: classifier(
        optimizer=lambda m: adam(copy.deepcopy(m), 3e-3)
    ),
}


@pytest.mark.parametrize("kind", IMMOVABLE)
def test_parameters_that_cannot_move_are_certain(kind: str, tmp_path: Path) -> None:
    assert finding(IMMOVABLE[kind](), tmp_path).confidence is Confidence.CERTAIN


def test_one_answer_for_all_samples(tmp_path: Path) -> None:
    found = finding(classifier(Blind()), tmp_path)
    assert found.confidence is Confidence.LIKELY
    assert found.evidence[-1].signal.name == "overfit.spread"


def test_a_loss_that_is_lost_whatever_is_changed(tmp_path: Path) -> None:
    def fragile(model: nn.Module, batch: Any) -> Tensor:
        moved = (model[2].weight - start).abs().max()
        return functional.cross_entropy(model(batch[0]) + (0.01 - moved).sqrt(), batch[1])

    torch.manual_seed(0)
    model = mlp()
    start = model[2].weight.detach().clone()
    found = finding(classifier(model, loss=fragile), tmp_path)
    assert "not finite" in found.summary


def test_words_with_the_same_beginning_are_allowed_for(tmp_path: Path) -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.rnn = nn.Embedding(20, 24), nn.GRU(24, 64, batch_first=True)
            self.head = nn.Linear(64, 20)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.rnn(self.embed(tokens))[0])

    def loss(model: nn.Module, batch: Any) -> Tensor:
        tokens = batch[0]
        return functional.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])

    torch.manual_seed(0)
    tokens = text(64, 4)
    tokens[:, 0] = 0
    model = Reader()
    found = made(Setup.of(model, adam(model, 1e-2), loss, loader(tokens)), tmp_path)
    assert one(found, OVERFIT_FLOOR) > 0.2
    assert check(found, select=["unfittable-batch"]).clear[0].because
