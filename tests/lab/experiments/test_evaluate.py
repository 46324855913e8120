"""The experiment evaluate: planted slices, hard samples and wrong labels are found."""

import numpy as np
import pytest
import torch
from sklearn import metrics as oracle
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.events import (
    DataEvaluated,
    LabelsExamined,
    LabelSuspected,
    NotApplicable,
    SliceMeasured,
    WorstExample,
)
from holter.reports.experiments.evaluate import results


class Chosen(nn.Module):
    """Returns logits that a test chose: the first columns of its input."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * x[:, : self.outputs]


def setup(x, y, loss, outputs, *, shuffle=False, batch=32):
    model = Chosen(outputs)
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=shuffle)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Setup.of(model, optimizer, loss, loader, valid=loader)


def classes(count=300):
    """Logits of three classes beside a column; samples with a large value in it are hard."""
    torch.manual_seed(0)
    y = torch.randint(0, 3, (count,))
    column = torch.randn(count)
    noise = torch.where(column > 1, 3.0, 0.5)
    logits = 3.0 * functional.one_hot(y, 3) + noise[:, None] * torch.randn(count, 3)
    return torch.cat([logits, column[:, None], torch.randn(count, 1)], 1), y


def told(made, kind):
    return [event.what for event in made.events_of(kind)]


def test_metrics_slices_and_worst_examples(tmp_path):
    x, y = classes()
    made = run("evaluate", setup(x, y, nn.CrossEntropyLoss(), 3), tmp_path / "run", worst=5)
    (evaluated,) = told(made, DataEvaluated)
    assert (evaluated.data, evaluated.samples, evaluated.is_complete) == ("validation", 300, True)
    losses = functional.cross_entropy(x[:, :3], y, reduction="none")
    assert evaluated.loss == pytest.approx(losses.mean().item(), rel=1e-4)
    assert evaluated.counts.classes.right == int((x[:, :3].argmax(1) == y).sum())
    shares = x[:, :3].softmax(1).numpy()
    shares = shares / shares.sum(1, keepdims=True)
    area = oracle.roc_auc_score(y.numpy(), shares, multi_class="ovr")
    assert evaluated.auroc == pytest.approx(area, abs=1e-4)
    worst = told(made, WorstExample)
    assert [one.index for one in worst] == losses.argsort(descending=True)[:5].tolist()
    assert worst[0].target == y[worst[0].index]
    by_column = [one for one in told(made, SliceMeasured) if one.by == "column 3"]
    assert by_column
    assert sum(one.samples for one in by_column) == 300
    assert by_column[0].group.startswith("0.")  # the group with the largest values comes first
    assert by_column[0].explained > 3 * by_column[0].noise
    assert "column 4" not in {one.by for one in told(made, SliceMeasured)}
    titles = [table.title for table in results(made)]
    assert titles[0] == "the model on its validation data"
    assert any(title.startswith("error by column 3") for title in titles)


def test_the_index_of_shuffled_samples_is_their_order(tmp_path):
    x, y = classes()
    torch.manual_seed(3)
    made = run("evaluate", setup(x, y, nn.CrossEntropyLoss(), 3, shuffle=True), tmp_path / "run")
    assert all(0 <= one.index < 300 for one in told(made, WorstExample))


@pytest.mark.parametrize("wanted", ["label", "4"])
def test_a_slice_that_is_asked_for(tmp_path, wanted):
    x, y = classes()
    made = run("evaluate", setup(x, y, nn.CrossEntropyLoss(), 3), tmp_path / "run", slice=wanted)
    name = {"4": "column 4"}.get(wanted, wanted)
    assert {one.by for one in told(made, SliceMeasured)} == {name}


def test_a_slice_that_there_is_not(tmp_path):
    x, y = classes()
    made = run("evaluate", setup(x, y, nn.CrossEntropyLoss(), 3), tmp_path / "run", slice="length")
    (why,) = told(made, NotApplicable)
    assert "cannot be grouped by length" in why.why


def test_yes_or_no_and_numbers(tmp_path):
    torch.manual_seed(0)
    y = (torch.rand(200) < 0.3).float()
    x = torch.randn(200, 2) + 2 * y[:, None]
    loss = lambda model, batch: functional.binary_cross_entropy_with_logits(  # noqa: E731
        model(batch[0]).squeeze(1), batch[1]
    )
    (evaluated,) = told(run("evaluate", setup(x, y, loss, 1), tmp_path / "a"), DataEvaluated)
    assert evaluated.auroc == pytest.approx(oracle.roc_auc_score(y, x[:, 0]), abs=1e-6)
    precision = oracle.average_precision_score(y, x[:, 0])
    assert evaluated.average_precision == pytest.approx(precision, abs=1e-6)
    numbers = setup(x, x[:, :1] + 1, nn.MSELoss(), 1)
    (evaluated,) = told(run("evaluate", numbers, tmp_path / "b"), DataEvaluated)
    assert evaluated.counts.numbers.bias == pytest.approx(-1)
    assert evaluated.auroc is None


def test_a_loss_written_by_hand(tmp_path):
    x, y = classes()

    def by_hand(model, batch):
        inputs, target = batch
        return -model(inputs).log_softmax(1).gather(1, target[:, None]).mean()

    (evaluated,) = told(run("evaluate", setup(x, y, by_hand, 3), tmp_path / "a"), DataEvaluated)
    assert evaluated.function == "nll_loss"
    assert evaluated.counts.classes.right == int((x[:, :3].argmax(1) == y).sum())


def test_a_loss_of_no_known_kind_is_computed_sample_by_sample(tmp_path):
    x, y = classes(64)

    def odd(model, batch):
        return (model(batch[0]).abs().sum(1) * (batch[1] + 1)).sqrt().mean() ** 2

    made = run("evaluate", setup(x, y, odd, 3), tmp_path / "a", worst=1)
    (evaluated,) = told(made, DataEvaluated)
    assert (evaluated.function, evaluated.counts, evaluated.samples) == ("", None, 64)
    losses = x[:, :3].abs().sum(1) * (y + 1)
    assert told(made, WorstExample)[0].index == int(losses.argmax())


def test_sequences_by_length_and_images_by_brightness(tmp_path):
    torch.manual_seed(0)
    tokens = torch.randint(1, 9, (120, 8))
    lengths = torch.randint(2, 9, (120,))
    tokens[torch.arange(8) >= lengths[:, None]] = 0
    target = (lengths > 5).long()
    embed = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(32, 2))
    loader = DataLoader(TensorDataset(tokens, target), 40)
    optimizer = torch.optim.SGD(embed.parameters(), lr=0.1)
    made = Setup.of(embed, optimizer, nn.CrossEntropyLoss(), loader, valid=loader)
    found = told(run("evaluate", made, tmp_path / "a", slice="length"), SliceMeasured)
    assert {one.group for one in found} == {str(n) for n in range(2, 9)}
    assert sum(one.samples for one in found) == 120
    images = torch.rand(120, 1, 4, 4) * torch.rand(120, 1, 1, 1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    loader = DataLoader(TensorDataset(images, target), 40)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader, valid=loader)
    found = told(run("evaluate", made, tmp_path / "b", slice="brightness"), SliceMeasured)
    assert len(found) == 5
    assert found[0].by == "brightness"


def test_wrong_labels_are_suspected(tmp_path):
    torch.manual_seed(0)
    y = torch.randint(0, 3, (300,))
    logits = 4.0 * functional.one_hot(y, 3) + 0.5 * torch.randn(300, 3)
    given = y.clone()
    given[:12] = (given[:12] + 1) % 3
    made = run(
        "evaluate", setup(logits, given, nn.CrossEntropyLoss(), 3), tmp_path / "run", labels=True
    )
    (examined,) = told(made, LabelsExamined)
    suspected = told(made, LabelSuspected)
    assert examined.samples == 300
    assert len({one.index for one in suspected} & set(range(12))) >= 10
    assert len(suspected) < 20
    assert all(one.suggested == y[one.index] for one in suspected if one.index < 12)


def test_labels_are_not_judged_by_a_model_that_was_trained_on_them(tmp_path):
    x, y = classes()
    made = setup(x, y, nn.CrossEntropyLoss(), 3)
    trained = Setup.of(made.model, made.optimizers[0], nn.CrossEntropyLoss(), made.train)
    found = run("evaluate", trained, tmp_path / "run", labels=True)
    assert [why.why.partition(",")[0] for why in told(found, NotApplicable)] == [
        "there are no validation samples to judge the labels of",
        "the weights may have been trained on these samples",
    ]
    assert told(found, LabelsExamined) == []


def blobs():
    """Three groups of points; of the first twelve the labels are wrong."""
    torch.manual_seed(1)
    y = torch.randint(0, 3, (200,))
    x = 4 * torch.randn(3, 6)[y] + torch.randn(200, 6)
    given = y.clone()
    given[:12] = (given[:12] + 1) % 3
    model = nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    loader = DataLoader(TensorDataset(x, given), 20, shuffle=True)
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader), y


def test_wrong_labels_of_training_samples_are_named(tmp_path):
    made, y = blobs()
    weights = made.model.weight.clone()
    found = run("evaluate", made, tmp_path / "run", labels=True, folds=4)
    (examined,) = told(found, LabelsExamined)
    assert (examined.data, examined.samples) == ("training", 200)
    suspected = told(found, LabelSuspected)
    assert len({one.index for one in suspected} & set(range(12))) >= 8
    assert len(suspected) < 20
    assert all(one.suggested == y[one.index] for one in suspected if one.index < 12)
    (table,) = (table for table in results(found) if "label errors" in table.title)
    assert "of 200 training samples" in table.title
    assert torch.equal(made.model.weight, weights)


def test_trainings_that_would_take_too_long_are_not_begun(tmp_path):
    made, _ = blobs()
    found = run("evaluate", made, tmp_path / "run", labels=True, fold_seconds=1e-6)
    assert told(found, LabelsExamined) == []
    assert any("fold-seconds=" in why.why for why in told(found, NotApplicable))


def test_the_weights_that_a_script_has_reached(tmp_path):
    x, y = classes()
    made = setup(x, y, nn.CrossEntropyLoss(), 3)
    reached = Setup(
        made.models, made.phases, made.train, valid=made.valid,
        reached={"": {"scale": torch.tensor(0.0)}},
    )  # fmt: skip
    (evaluated,) = told(run("evaluate", reached, tmp_path / "run"), DataEvaluated)
    assert evaluated.loss == pytest.approx(np.log(3), rel=1e-4)
    assert made.model.scale.item() == 1
