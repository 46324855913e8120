"""Losses per element and evaluation passes, on small trainings in the styles that scripts have."""

import functools
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset

from holter import Run
from holter.diagnosis.facts import Facts
from holter.record.evaluations import split_of
from holter.record.events import EvaluationSeen
from holter.record.signals import (
    LOSS,
    LOSS_ELEMENTS,
    LOSS_MEAN,
    LOSS_ROOT_SHARE,
    VAL_ACCURACY,
    VAL_LOSS,
)
from watching.collectors.trainings import values, watching

approx = functools.partial(pytest.approx, rel=1e-5)


def classes(count, seed=0):
    torch.manual_seed(seed)
    inputs = torch.randn(count, 6)
    return TensorDataset(inputs, inputs[:, :3].argmax(1))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05)


def train_epoch(model, optimizer, loader, reduction="mean"):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y, reduction=reduction).backward()
        optimizer.step()


def evaluate(model, loader):
    """As most scripts do: the mean of all samples."""
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += functional.cross_entropy(model(x), y).item() * len(x)
    return total / len(loader.dataset)


def seen(run):
    return {event.what.name: event.what for event in run.events_of(EvaluationSeen)}


def losses_on(run, data, function="cross_entropy"):
    return values(run, VAL_LOSS, f"{function} on {data}")


# Reductions.


def test_a_test_loop_that_sums_over_batches(tmp_path, model, optimizer):
    """As in pytorch/examples: the sum of all losses over the length of the data set."""
    train_loader = DataLoader(classes(40), 16, shuffle=True)
    test_loader = DataLoader(classes(50, 1), 16)
    printed = []

    def test():
        model.eval()
        test_loss = 0
        with torch.no_grad():
            for data, target in test_loader:
                output = functional.log_softmax(model(data), dim=1)
                test_loss += functional.nll_loss(output, target, reduction="sum").item()
        printed.append(test_loss / len(test_loader.dataset))

    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            model.train()
            for data, target in train_loader:
                optimizer.zero_grad()
                output = functional.log_softmax(model(data), dim=1)
                functional.nll_loss(output, target).backward()
                optimizer.step()
            test()
    run = Run.load(tmp_path / "run")
    assert losses_on(run, "test_loader", "nll_loss") == approx(printed)
    assert Facts(run).evaluation.owner == "nll_loss on test_loader"
    assert Facts(run).validation.is_comparable


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["sum", "none", "mean"])
def test_ignored_targets_and_class_weights(tmp_path, model, optimizer, reduction, weighted):
    weight = torch.tensor([0.2, 1.0, 3.0]) if weighted else None
    x, y = classes(30).tensors
    y = torch.where(torch.arange(30) % 3 == 0, -100, y)
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            functional.cross_entropy(model(x), y, weight).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                functional.cross_entropy(model(x), y, weight, reduction=reduction)
                wanted.append(float(functional.cross_entropy.__wrapped__(model(x), y, weight)))
            model.train()
    assert values(Run.load(tmp_path / "run"), VAL_LOSS, "cross_entropy") == approx(wanted)


ELEMENTS = [
    ("mse_loss", (4, 5), (4, 5), {}),
    ("mse_loss", (4, 5), (4, 5), {"weight": torch.rand(4, 5)}),
    ("l1_loss", (4, 5), (4, 5), {"weight": torch.rand(4, 5)}),
    ("huber_loss", (4, 5), (4, 5), {"weight": torch.rand(4, 5)}),
    ("smooth_l1_loss", (4,), (4,), {}),
    ("binary_cross_entropy_with_logits", (4, 5), (4, 5), {"pos_weight": torch.rand(5)}),
    ("binary_cross_entropy_with_logits", (4, 5), (4, 5), {"weight": torch.rand(5)}),
    ("poisson_nll_loss", (4, 5), (4, 5), {}),
    ("gaussian_nll_loss", (4, 5), (4, 5), {"var": torch.rand(4, 1)}),
    ("multilabel_soft_margin_loss", (4, 5), (4, 5), {}),
    ("cross_entropy", (4, 5), (4, 5), {}),
    ("cross_entropy", (4, 5), "classes", {"label_smoothing": 0.1, "weight": torch.rand(5)}),
    ("cross_entropy", (2, 5, 3), "maps", {}),
    ("multi_margin_loss", (4, 5), "classes", {}),
    ("triplet_margin_loss", (4, 5), (4, 5), {"negative": torch.randn(4, 5)}),
]


@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize(("name", "shape", "target", "options"), ELEMENTS)
def test_a_sum_over_the_elements_is_the_mean(  # noqa: PLR0917
    tmp_path, model, optimizer, reduction, name, shape, target, options
):
    function = getattr(functional, name)
    prediction = torch.randn(shape)
    if target == "classes":
        against = torch.tensor([0, 1, 4, 2])
    elif target == "maps":
        against = torch.randint(0, 5, (2, 3))
    else:
        against = torch.rand(target).softmax(-1)
    with watching(tmp_path / "run", model, optimizer), torch.no_grad():
        with torch.enable_grad():
            train_epoch(model, optimizer, DataLoader(classes(8), 8))
        model.eval()
        getattr(functional, name)(prediction, against, reduction=reduction, **options)
    wanted = float(function(prediction, against, **options))
    assert values(Run.load(tmp_path / "run"), VAL_LOSS, name) == approx([wanted])


def test_a_sum_divided_by_the_number_of_items(tmp_path, model, optimizer):
    """As in Transformers: a step takes several batches and counts their labels beforehand."""

    def loss_function(logits, labels, num_items_in_batch=None):
        reduction = "sum" if num_items_in_batch is not None else "mean"
        loss = functional.cross_entropy(logits, labels, ignore_index=-100, reduction=reduction)
        return loss if num_items_in_batch is None else loss / num_items_in_batch

    x, y = classes(60).tensors
    y = torch.where(torch.rand(60) < 0.3, -100, y)
    printed, given = [], []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(6):
            model.train()
            items = (y[:48] != -100).sum()
            optimizer.zero_grad()
            given.append(0.0)
            for at in (0, 16, 32):
                part = loss_function(model(x[at : at + 16]), y[at : at + 16], items)
                part.backward()
                given[-1] += part.item()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                items = (y[48:] != -100).sum()
                printed.append(float(loss_function(model(x[48:]), y[48:], items)))
    run = Run.load(tmp_path / "run")
    facts = Facts(run)
    assert values(run, LOSS, "") == approx(given)
    assert values(run, VAL_LOSS, "cross_entropy") == approx(printed)
    assert facts.validation.is_comparable
    assert facts.validation.training.tolist() == approx(given)


@pytest.mark.parametrize("how", ["sum", "none"])
def test_a_summed_loss_is_compared_per_element(tmp_path, model, optimizer, how):
    train_loader, val_loader = DataLoader(classes(40), 16), DataLoader(classes(24, 1), 16)
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(5):
            model.train()
            for x, y in train_loader:
                loss = functional.cross_entropy(model(x), y, reduction=how).sum()
                wanted.append(loss.item() / len(x))
                optimizer.zero_grad()
                (loss / 16 if how == "none" else loss).backward()
                optimizer.step()
            evaluate(model, val_loader)
    run = Run.load(tmp_path / "run")
    curves = Facts(run).validation
    assert curves.is_comparable
    assert values(run, LOSS_MEAN, "cross_entropy") == approx(wanted)
    assert curves.training == pytest.approx(
        [sorted(wanted[at : at + 3])[1] for at in range(0, 15, 3)], rel=0.3
    )
    if how == "sum":
        assert values(run, LOSS_ELEMENTS, "cross_entropy") == [16, 16, 8] * 5
        sizes = [16, 16, 8] * 5
        assert values(run, LOSS, "") == approx(
            [mean * size for mean, size in zip(wanted, sizes, strict=True)]
        )
        curve = Facts(run).curve.values  # as if all batches were equal
        assert curve.tolist() == approx([16 * mean for mean in wanted])
        assert Facts(run).baseline.scale == 16


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(12, 4), nn.Linear(2, 12)

    def forward(self, x):
        mean, spread = self.encode(x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * torch.exp(spread / 2)
        return torch.sigmoid(self.decode(code)), mean, spread


def test_a_variational_autoencoder(tmp_path):
    """As in pytorch/examples: two sums in one loss, printed per sample, without a mean of both."""
    torch.manual_seed(0)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = torch.rand(100, 12)
    train_loader, test_loader = DataLoader(data[:72], 16, shuffle=True), DataLoader(data[72:], 16)
    given, means, tested = [], [], []

    def loss_function(recon, x, mu, logvar):
        reconstruction = functional.binary_cross_entropy(recon, x, reduction="sum")
        return reconstruction, -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())

    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            model.train()
            for x in train_loader:
                optimizer.zero_grad()
                first, second = loss_function(model(x)[0], x, *model(x)[1:])
                means.append(first.item() / x.numel())
                given.append((first + second).item())
                (first + second).backward()
                optimizer.step()
            model.eval()
            total = 0.0
            with torch.no_grad():
                for x in test_loader:
                    total += loss_function(model(x)[0], x, *model(x)[1:])[0].item()
            tested.append(total / test_loader.dataset.numel())
    run = Run.load(tmp_path / "run")
    assert values(run, LOSS, "") == approx(given)
    assert values(run, LOSS_MEAN, "binary_cross_entropy") == approx(means)
    assert losses_on(run, "test_loader", "binary_cross_entropy") == approx(tested)
    curves = Facts(run).validation
    assert curves.is_comparable
    assert abs(curves.final_training - curves.final_validation) < 0.1  # per pixel, both
    assert VAL_ACCURACY not in run  # of shades of grey


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_what_cannot_be_divided_is_not_compared(tmp_path, model, optimizer, reduction):
    """A step calls the loss function twice before its backward: which of them is meant?"""
    loader, val_loader = DataLoader(classes(32), 16), DataLoader(classes(16, 1), 16)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(5):
            for x, y in loader:
                one = functional.cross_entropy(model(x), y, reduction=reduction)
                other = functional.cross_entropy(model(-x), y, reduction=reduction)
                (one + 0.3 * other).backward()
                optimizer.step()
            evaluate(model, val_loader)
            model.train()
    run = Run.load(tmp_path / "run")
    assert LOSS_MEAN not in run
    assert LOSS_ROOT_SHARE not in run
    assert "not comparable" in Facts(run).validation.incomparable


# Passes.


def test_a_final_test_is_not_the_last_validation(tmp_path, model, optimizer):
    train_loader = DataLoader(classes(32), 16)
    val_loader, test_loader = DataLoader(classes(24, 1), 16), DataLoader(classes(48, 2), 16)
    validated = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, train_loader)
            validated.append(evaluate(model, val_loader))
        tested = evaluate(model, test_loader)
    run = Run.load(tmp_path / "run")
    assert losses_on(run, "val_loader") == approx(validated)
    assert losses_on(run, "test_loader") == approx([tested])
    assert Facts(run).validation.validation.tolist() == approx(validated)
    assert {data.split for data in seen(run).values()} == {"validation", "test"}


def test_the_validation_again_after_training(tmp_path, model, optimizer):
    """The best weights are loaded and validated once more: no step is in between."""
    train_loader, val_loader = DataLoader(classes(32), 16), DataLoader(classes(24, 1), 16)
    validated = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, train_loader)
            validated.append(evaluate(model, val_loader))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2)
        evaluate(model, val_loader)
    run = Run.load(tmp_path / "run")
    assert losses_on(run, "val_loader") == approx(validated)
    assert len(run[VAL_LOSS]) == 2
    assert Facts(run).evaluation.owner == "cross_entropy on val_loader"


def test_splits_without_loaders(tmp_path, model, optimizer):
    """As in nanoGPT: batches are cut by hand, train and val in one go, first of all at step 0."""
    data = {"train": classes(64).tensors, "val": classes(32, 1).tensors}
    printed = {"train": [], "val": []}

    def get_batch(split):
        at = torch.randint(len(data[split][0]) - 8, (1,)).item()
        return data[split][0][at : at + 8], data[split][1][at : at + 8]

    @torch.no_grad()
    def estimate_loss():
        out = {}
        model.eval()
        for split in ["train", "val"]:
            losses = torch.zeros(5)
            for k in range(5):
                X, Y = get_batch(split)
                losses[k] = functional.cross_entropy(model(X), Y).item()
            out[split] = losses.mean().item()
            printed[split].append(out[split])
        model.train()
        return out

    with watching(tmp_path / "run", model, optimizer):
        for step in range(20):
            if step % 5 == 0:
                estimate_loss()
            X, Y = get_batch("train")
            functional.cross_entropy(model(X), Y).backward()
            optimizer.step()
            optimizer.zero_grad()
    run = Run.load(tmp_path / "run")
    for split, wanted in printed.items():
        assert losses_on(run, split) == approx(wanted)
    facts = Facts(run)
    assert facts.evaluation.owner == "cross_entropy on val"
    assert {name: data.split for name, data in seen(run).items()} == {
        "train": "train",
        "val": "validation",
    }


def test_a_setting_of_the_script_is_no_split(tmp_path, model, optimizer):
    def main(mode):
        for _ in range(3):
            train_epoch(model, optimizer, DataLoader(classes(16), 8))
            model.eval()
            with torch.no_grad():
                functional.cross_entropy(model(torch.ones(4, 6)), torch.zeros(4).long())
        return mode

    with watching(tmp_path / "run", model, optimizer):
        main("train")
    facts = Facts(Run.load(tmp_path / "run"))
    assert len(facts.evaluation.losses) == 3


def test_loaders_in_one_loop(tmp_path, model, optimizer):
    train_loader = DataLoader(classes(32), 16)
    loaders = {"val": DataLoader(classes(24, 1), 16), "test": DataLoader(classes(48, 2), 16)}
    wanted = {"val": [], "test": []}
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, train_loader)
            for loader in loaders.values():
                name = next(name for name, known in loaders.items() if known is loader)
                wanted[name].append(evaluate(model, loader))
    run = Run.load(tmp_path / "run")
    for name, values_ in wanted.items():
        assert losses_on(run, name) == approx(values_)
    assert Facts(run).evaluation.data == "val"


@pytest.mark.parametrize("inline", [False, True])
def test_loaders_that_are_made_for_each_pass(tmp_path, model, optimizer, inline):
    """As in makemore: a function is given a data set and makes a loader of it."""
    train_dataset, test_dataset = classes(32), classes(24, 1)
    printed = {"train_dataset": [], "test_dataset": []}

    def evaluate_set(dataset):
        model.eval()
        losses = []
        loader = None if inline else DataLoader(dataset, batch_size=8)
        with torch.inference_mode():
            for x, y in DataLoader(dataset, batch_size=8) if inline else loader:
                losses.append(functional.cross_entropy(model(x), y).item())
        return sum(losses) / len(losses)

    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, DataLoader(train_dataset, 8, shuffle=True))
            printed["train_dataset"].append(evaluate_set(train_dataset))
            printed["test_dataset"].append(evaluate_set(test_dataset))
    run = Run.load(tmp_path / "run")
    for name, wanted in printed.items():
        assert losses_on(run, name) == approx(wanted)
    assert seen(run)["train_dataset"].trained_on
    assert Facts(run).evaluation.data == "test_dataset"


def test_loaders_that_are_made_for_each_pass_and_kept(tmp_path, model, optimizer):
    """As in Transformers: the accelerator keeps every loader that it has prepared."""
    eval_dataset, test_dataset, kept = classes(24, 1), classes(40, 2), []
    printed = []

    def evaluate_set(eval_dataset):
        kept.append(DataLoader(eval_dataset, 8))
        return evaluate(model, kept[-1])

    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, DataLoader(classes(32), 8))
            printed.append(evaluate_set(eval_dataset))
        tested = evaluate_set(test_dataset)
    run = Run.load(tmp_path / "run")
    assert losses_on(run, "eval_dataset") == approx(printed)
    assert losses_on(run, "test_dataset") == approx([tested])


def test_data_sets_that_are_made_for_each_pass(tmp_path, model, optimizer):
    x, y = classes(24, 1).tensors
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, DataLoader(classes(32), 16))
            evaluate(model, DataLoader(TensorDataset(x, y), 16))
    (series,) = Run.load(tmp_path / "run")[VAL_LOSS].values()
    assert len(series) == 4


def test_parts_of_one_data_set(tmp_path, model, optimizer):
    """Samplers choose what is trained on: the other part is no training data."""
    whole = classes(48)
    training = DataLoader(whole, 16, sampler=SubsetRandomSampler(range(32)))
    held_out = DataLoader(whole, 16, sampler=SubsetRandomSampler(range(32, 48)))
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, training)
            evaluate(model, held_out)
    run = Run.load(tmp_path / "run")
    (data,) = seen(run).values()
    assert not data.trained_on
    assert len(Facts(run).evaluation.losses) == 4


def test_only_training_data_are_evaluated(tmp_path, model, optimizer):
    loader = DataLoader(classes(32), 16)
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, loader)
            evaluate(model, loader)
    facts = Facts(Run.load(tmp_path / "run"))
    assert facts.evaluation == "only the training data are evaluated"
    assert facts.validation == facts.evaluation


def test_whole_sets_at_once(tmp_path, model, optimizer):
    """Full batches, evaluated on lines of their own: the targets say which data they are."""
    x_train, y_train = classes(32).tensors
    x_val, y_val = classes(16, 1).tensors
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            model.train()
            functional.cross_entropy(model(x_train), y_train).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                functional.cross_entropy(model(x_train), y_train)
                wanted.append(functional.cross_entropy(model(x_val), y_val).item())
    run = Run.load(tmp_path / "run")
    assert losses_on(run, "y_val") == approx(wanted)
    assert Facts(run).evaluation.data == "y_val"


def test_passes_that_nothing_names_are_not_compared(tmp_path, model, optimizer):
    one, other = classes(16, 1).tensors, classes(16, 2).tensors
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(4):
            train_epoch(model, optimizer, DataLoader(classes(32), 16))
            model.eval()
            with torch.no_grad():
                functional.cross_entropy(model(one[0]), one[1])
                functional.cross_entropy(model(other[0]), other[1])
    facts = Facts(Run.load(tmp_path / "run"))
    assert "it is unknown which one is the validation set" in facts.evaluation
    assert facts.validation == facts.evaluation


def test_training_in_eval_mode_is_no_evaluation(tmp_path, model, optimizer):
    train_loader, val_loader = DataLoader(classes(32), 16), DataLoader(classes(24, 1), 16)
    wanted = []
    with watching(tmp_path / "run", model, optimizer):
        for _ in range(3):
            model.eval()
            for x, y in train_loader:
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            wanted.append(evaluate(model, val_loader))
    run = Run.load(tmp_path / "run")
    assert list(seen(run)) == ["val_loader"]
    assert losses_on(run, "val_loader") == approx(wanted)


@pytest.mark.parametrize("context", [torch.no_grad, nullcontext])
def test_a_training_batch_that_waits(tmp_path, model, optimizer, context):
    """The loop over training batches evaluates other data before it trains on a batch."""
    x, y = classes(16, 1).tensors
    with watching(tmp_path / "run", model, optimizer):
        for step, (inputs, targets) in enumerate(DataLoader(classes(128), 8)):
            if step % 4 == 0:
                model.eval()
                with context():
                    for part in (x[:8], y[:8]), (x[8:], y[8:]):
                        functional.cross_entropy(model(part[0]), part[1])
                model.train()
            functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    run = Run.load(tmp_path / "run")
    (data,) = seen(run).values()
    assert not data.loader
    assert len(Facts(run).evaluation.losses) == 4


def test_locals_are_left_as_they_are(tmp_path, model, optimizer):
    train_loader, val_loader = DataLoader(classes(16), 8), DataLoader(classes(8, 1), 8)

    def validate(split):
        settings = locals()
        evaluate(model, val_loader)
        evaluate(model, Subset(val_loader.dataset, [0]) and DataLoader(classes(8, 2), 8))
        return settings

    with watching(tmp_path / "run", model, optimizer):
        train_epoch(model, optimizer, train_loader)
        assert list(validate("val")) == ["split", "model", "val_loader"]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train_loader", "train"),
        ("trainloader", "train"),
        ("valset", "validation"),
        ("X_test", "test"),
        ("Xdev", "validation"),
        ("Ytr", "train"),
        ("evalDataLoader", "validation"),
        ("values", ""),
        ("interval", ""),
        ("latest", ""),
        ("train_val_split", ""),
    ],
)
def test_splits_by_name(name, split):
    assert split_of(name) == split
