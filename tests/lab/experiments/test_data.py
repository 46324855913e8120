import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from data_kinds import HEALTHY, Pictures, checked, flipped, pictures, split, table, training
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split

from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.events import SampleShown
from holter.record.findings import Confidence, Finding, Severity
from holter.record.signals import (
    DATASET_CLASS,
    DATASET_CLASS_COUNT,
    DATASET_EXAMINED,
    DATASET_LABEL_CHANGES,
    DATASET_LENGTH,
    DATASET_STD,
)


def found(setup: Setup, folder: Path, **options: Any) -> tuple[Finding, ...]:
    return checked("data", setup, folder / "run", **options).findings


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_data(kind: str, tmp_path: Path) -> None:
    assert found(HEALTHY[kind](), tmp_path) == ()


@pytest.mark.parametrize(
    ("kind", "clear"),
    [
        ("augmentation_in_training_only", {"overlapping-splits", "out-of-range-labels"}),
        ("regression", {"leaking-features", "constant-features", "duplicate-samples"}),
        ("dictionaries", {"imbalanced-classes", "overlapping-splits"}),
        ("streams", {"overlapping-splits", "imbalanced-classes", "leaking-features"}),
        ("labels_to_be_ignored", {"out-of-range-labels"}),
        ("samples_with_their_index", {"imbalanced-classes", "overlapping-splits"}),
    ],
)
def test_what_is_clear_was_looked_at(kind: str, clear: set[str], tmp_path: Path) -> None:
    said = checked("data", HEALTHY[kind](), tmp_path / "run")
    assert clear <= {each.rule for each in said.clear}


@pytest.mark.parametrize(
    ("kind", "rule", "why"),
    [
        ("regression", "imbalanced-classes", "classes"),
        ("labels_counted_from_one", "out-of-range-labels", "other targets"),
        ("batches_in_a_list", "overlapping-splits", "no validation"),
        ("tokens", "leaking-features", "table"),
    ],
)
def test_says_why_it_does_not_apply(kind: str, rule: str, why: str, tmp_path: Path) -> None:
    said = checked("data", HEALTHY[kind](), tmp_path / "run")
    (verdict,) = (each for each in said.not_examined if each.rule == rule)
    assert why in verdict.because


def shared_by_position() -> Setup:
    data, order = TensorDataset(*pictures()), torch.randperm(600).tolist()
    return training(Subset(data, order[:500]), Subset(data, order[450:]))


def split_twice() -> Setup:
    x, y = pictures()
    train, _ = random_split(Pictures(x, y, flipped), [500, 100])
    _, valid = random_split(Pictures(x, y), [500, 100])
    return training(train, valid)


class Changed(Dataset):
    def __init__(self, inner: Any, change: Callable[[Tensor], Tensor]) -> None:
        self.inner, self.change = inner, change

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x, y = self.inner[index]
        return self.change(x), y


def split_twice_and_wrapped() -> Setup:
    data = TensorDataset(*pictures())
    train, valid = random_split(data, [500, 100])[0], random_split(data, [500, 100])[1]
    return training(Changed(train, flipped), Changed(valid, lambda x: x))


def split_twice_from_files() -> Setup:
    class Files(Pictures):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.samples = [(f"{i}.png", int(label)) for i, label in enumerate(self.y)]
            self.x = self.x.clone()

    x, y = pictures()
    train, _ = random_split(Files(x, y, flipped), [500, 100])
    _, valid = random_split(Files(x, y), [500, 100])
    return training(train, valid)


def all_of_validation() -> Setup:
    x, y = pictures()
    return training(TensorDataset(x, y), TensorDataset(x[:80].clone(), y[:80]))


def some_of_validation() -> Setup:
    x, y = pictures()
    return training(TensorDataset(x[:500], y[:500]), TensorDataset(x[480:], y[480:]))


def part_of_a_large_one() -> Setup:
    x, y = torch.randn(20_000, 4), torch.randint(3, (20_000,))
    return training(TensorDataset(x, y), TensorDataset(x[:3000].clone(), y[:3000]))


def bits_known_by_heart() -> Setup:
    x = torch.randint(2, (1000, 16)).float()
    y = x.sum(1).long() % 2
    return training(TensorDataset(x, y), TensorDataset(x[:300], y[:300]))


@pytest.mark.parametrize(
    ("setup", "confidence"),
    [
        (shared_by_position, Confidence.CERTAIN),
        (split_twice, Confidence.LIKELY),
        (split_twice_and_wrapped, Confidence.LIKELY),
        (split_twice_from_files, Confidence.LIKELY),
        (all_of_validation, Confidence.CERTAIN),
        (some_of_validation, Confidence.LIKELY),
        (part_of_a_large_one, Confidence.LIKELY),
        (bits_known_by_heart, Confidence.CERTAIN),
    ],
)
def test_finds_splits_that_overlap(
    setup: Callable[[], Setup], confidence: Confidence, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    (finding,) = found(setup(), tmp_path)
    assert finding.rule == "overlapping-splits"
    assert finding.confidence is confidence
    assert finding.severity is Severity.ERROR


def test_copies_made_before_splitting_are_a_hint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = table(1000), (torch.rand(1000) > 0.8).long()
    rare = y.nonzero()[:, 0]
    order = torch.cat([torch.arange(1000), rare.repeat(2)])
    order = order[torch.randperm(len(order))]
    (finding,) = found(split(x[order], y[order]), tmp_path)
    assert finding.rule == "overlapping-splits"
    assert finding.confidence is Confidence.HINT


def noisy_copies() -> Setup:
    x, y = table(300), torch.randint(3, (300,))
    x = torch.cat([x, torch.randn(300, 4)], 1).repeat(3, 1)
    order = torch.randperm(900)
    return split(
        (x + 0.01 * torch.randn_like(x))[order], y.repeat(3)[order], model=nn.Linear(10, 3)
    )


def test_copies_with_noise_before_splitting_are_a_hint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    (finding,) = found(noisy_copies(), tmp_path)
    assert finding.rule == "overlapping-splits"
    assert finding.confidence is Confidence.HINT
    assert "almost equal" in finding.summary


def two_columns_of_the_price() -> Setup:
    x = torch.randn(600, 9)
    y = x[:, 3:4] - x[:, 7:8]
    return split(x, y, model=nn.Linear(9, 1), loss=nn.MSELoss())


def distance_from_the_middle() -> Setup:
    x = torch.randn(600, 6)
    return split(x, x[:, 4:5].abs(), model=nn.Linear(6, 1), loss=nn.MSELoss())


def nearly_in_order() -> Setup:
    x = torch.randn(600, 6)
    y = x[:, 2:3] + 0.15 * torch.randn(600, 1)
    return split(x, y, model=nn.Linear(6, 1), loss=nn.MSELoss())


@pytest.mark.parametrize(
    ("setup", "columns"),
    [(distance_from_the_middle, (4, 4)), (nearly_in_order, (2, 2))],
)
def test_finds_leaks_of_other_kinds(
    setup: Callable[[], Setup], columns: tuple[int, int], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    (finding,) = found(setup(), tmp_path)
    assert finding.rule == "leaking-features"
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].steps == columns


def test_two_columns_that_make_up_the_target_are_noted(tmp_path: Path) -> None:
    torch.manual_seed(0)
    checkup = checked("data", two_columns_of_the_price(), tmp_path / "run")
    assert checkup.findings == ()
    (note,) = [each for each in checkup.normal if each.rule == "leaking-features"]
    assert note.summary.startswith("columns 3 and 7 together give the order of the targets")


def test_finds_data_that_is_there_twice(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = table(), torch.randint(3, (600,))
    (finding,) = found(training(TensorDataset(x.repeat(2, 1), y.repeat(2))), tmp_path)
    assert finding.rule == "duplicate-samples"
    assert "all of 1200" in finding.summary


def test_finds_two_labels_of_one_input(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = table(), torch.randint(3, (600,))
    x[100:110], y[100:110] = x[:10], (y[:10] + 1) % 3
    (finding,) = found(training(TensorDataset(x, y)), tmp_path)
    assert finding.rule == "duplicate-samples"
    assert "20 of 600" in finding.summary


def test_finds_a_constant_column(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = table()
    x[:, 2] = 0.37
    (finding,) = found(split(x, torch.randint(3, (600,))), tmp_path)
    assert finding.rule == "constant-features"
    assert finding.evidence[0].steps == (2, 2)


def test_finds_an_imbalance(tmp_path: Path) -> None:
    torch.manual_seed(0)
    (finding,) = found(split(table(), (torch.arange(600) % 50 == 0).long()), tmp_path)
    assert finding.rule == "imbalanced-classes"
    assert "98 %" in finding.evidence[0].says


def leaking_price() -> Setup:
    x = table()
    y = x @ torch.randn(6, 1) + torch.randn(600, 1)
    return split(torch.cat([x, 3 - 2 * y], 1), y, model=nn.Linear(7, 1), loss=nn.MSELoss())


def leaking_class() -> Setup:
    y = torch.randint(5, (600,))
    values = torch.randn(5)  # as means of something by class would be
    return split(torch.cat([table(), values[y, None]], 1), y)


def leaking_one_hot() -> Setup:
    y = torch.randint(5, (600,))
    return split(torch.cat([table(), torch.eye(5)[y]], 1), y)


@pytest.mark.parametrize("setup", [leaking_price, leaking_class, leaking_one_hot])
def test_finds_the_target_among_the_columns(setup: Callable[[], Setup], tmp_path: Path) -> None:
    torch.manual_seed(0)
    (finding,) = found(setup(), tmp_path)
    assert finding.rule == "leaking-features"
    assert finding.confidence is Confidence.LIKELY
    assert finding.evidence[0].steps[0] == 6


def cube_of_one_column() -> Setup:
    x = table()
    return split(x, x[:, :1] ** 3, model=nn.Linear(6, 1), loss=nn.MSELoss())


def threshold_of_one_column() -> Setup:
    x = table()
    return split(x, (x[:, 0] > 0).long())


def one_of_several_codes() -> Setup:
    letters = torch.randint(5, (600, 4))
    return split(torch.eye(5)[letters].flatten(1), letters[:, 0])


@pytest.mark.parametrize(
    "setup", [cube_of_one_column, threshold_of_one_column, one_of_several_codes]
)
def test_what_one_column_predicts_is_a_hint(setup: Callable[[], Setup], tmp_path: Path) -> None:
    torch.manual_seed(0)
    (finding,) = found(setup(), tmp_path)
    assert finding.rule == "leaking-features"
    assert finding.confidence is Confidence.HINT
    assert finding.evidence[0].steps[0] == 0


def test_means_of_the_target_that_include_the_sample_are_a_hint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    category, y = torch.randint(1500, (2000,)), torch.randint(2, (2000,))
    sums = torch.zeros(1500).index_add(0, category[:1600], y[:1600].float())
    counts = torch.zeros(1500).index_add(0, category[:1600], torch.ones(1600))
    means = sums / counts.clamp(min=1)
    (finding,) = found(split(torch.cat([table(2000), means[category, None]], 1), y), tmp_path)
    assert finding.rule == "leaking-features"
    assert finding.confidence is Confidence.HINT


def test_names_samples_that_are_not_finite(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = table(), torch.randn(600, 1)
    x[17, 3], x[40, 1], y[5] = math.nan, math.inf, math.nan
    (finding,) = found(split(x, y, model=nn.Linear(6, 1), loss=nn.MSELoss()), tmp_path)
    assert finding.rule == "nonfinite-samples"
    assert finding.confidence is Confidence.CERTAIN
    assert "(17, 40)" in finding.summary
    assert "(5)" in finding.summary


def test_names_labels_that_are_out_of_range(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = table(), torch.randint(4, (600,))
    y[[100, 300]] = 4
    (finding,) = found(split(x, y, model=nn.Linear(6, 4)), tmp_path)
    assert finding.rule == "out-of-range-labels"
    assert "samples 100, 300" in finding.summary


def test_labels_that_a_collate_function_changes_are_not_judged(tmp_path: Path) -> None:
    torch.manual_seed(0)
    rows = [(int(label), torch.randint(500, (7,))) for label in torch.randint(1, 5, (600,))]

    def collate(items: Any) -> tuple[Tensor, Tensor]:
        labels, texts = zip(*items, strict=True)
        return torch.stack(texts), torch.tensor(labels) - 1

    loader = DataLoader(rows, 32, shuffle=True, collate_fn=collate)
    model = nn.EmbeddingBag(500, 4)
    setup = Setup.of(model, torch.optim.SGD(model.parameters(), 1.0), nn.CrossEntropyLoss(), loader)
    assert found(setup, tmp_path) == ()


def test_targets_of_batches_are_what_the_model_is_not_given(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = table(), torch.randint(3, (600,))
    x[:, 5] = y
    rows = [{"b": y[i : i + 50], "a": x[i : i + 50]} for i in range(0, 600, 50)]
    loss = lambda model, row: nn.functional.cross_entropy(model(row["a"]), row["b"])  # noqa: E731
    (finding,) = found(training(rows, None, nn.Linear(6, 3), loss), tmp_path)
    assert finding.rule == "leaking-features"


def test_a_data_set_that_raises_is_the_reason(tmp_path: Path) -> None:
    class Broken(Pictures):
        def __getitem__(self, index: int) -> Any:
            raise KeyError("age")

    setup = training([(table(8), torch.zeros(8, dtype=torch.long))], model=nn.Linear(6, 2))
    loaders = {"train": DataLoader(Broken(*pictures()), 8)}
    setup = Setup(setup.models, setup.phases, setup.train, loaders=loaders)
    said = checked("data", setup, tmp_path / "run")
    assert said.not_examined
    assert all("raises KeyError: 'age'" in each.because for each in said.not_examined)
    assert said.findings == ()


def test_a_broken_validation_set_leaves_the_rest(tmp_path: Path) -> None:
    class Broken(Pictures):
        def __getitem__(self, index: int) -> Any:
            raise OSError("no such file")

    x, y = pictures()
    said = checked("data", training(Pictures(x, y), Broken(x, y)), tmp_path / "run")
    (reason,) = (e.because for e in said.not_examined if e.rule == "overlapping-splits")
    assert "no such file" in reason
    assert "imbalanced-classes" in {each.rule for each in said.clear}


def test_reads_no_more_than_it_may(tmp_path: Path) -> None:
    class Slow(Pictures):
        reads = 0

        def __getitem__(self, index: int) -> Any:
            Slow.reads += 1
            return super().__getitem__(index)

    setup = training(Slow(*pictures()))
    Slow.reads = 0
    made = run("data", setup, tmp_path / "few", samples=50)
    assert Slow.reads < 50 + 2 * 32
    assert made[DATASET_EXAMINED]["train"].values == [50]
    made = run("data", setup, tmp_path / "short", seconds=0.0)
    assert made[DATASET_EXAMINED]["train"].values == [1]


def test_data_sets_are_left_as_they_were(tmp_path: Path) -> None:
    class Lazy(Pictures):
        file: object = None

        def __init__(self) -> None:
            super().__init__(*pictures())
            self.numbers = torch.Generator().manual_seed(3)

        def __getitem__(self, index: int) -> Any:
            self.opened = True
            noise = torch.randn(1, 8, 8, generator=self.numbers)
            return self.x[index] + noise, self.y[index]

    data = Lazy()
    loaders = {"train": DataLoader(data, 32)}
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    batches = [(torch.rand(8, 1, 8, 8), torch.zeros(8, dtype=torch.long))]
    setup = training(batches, model=model)
    setup = Setup(setup.models, setup.phases, setup.train, loaders=loaders)
    before = data.numbers.get_state()
    for experiment in ("data", "augmentation"):
        checked(experiment, setup, tmp_path / experiment)
        assert torch.equal(data.numbers.get_state(), before)
        assert "opened" not in vars(data)


def test_writes_down_classes_sizes_and_a_few_samples(tmp_path: Path) -> None:
    x, y = table(), torch.arange(600) // 200
    made = run("data", training(TensorDataset(x, y)), tmp_path / "run", shown=2)
    assert made[DATASET_LENGTH]["train"].values == [600]
    assert made[DATASET_CLASS]["train"].values.tolist() == [0, 1, 2]
    assert made[DATASET_CLASS_COUNT]["train"].values.tolist() == [200, 200, 200]
    assert made[DATASET_LABEL_CHANGES]["train"].values[0] < 0.02  # sorted, and served in order
    assert made[DATASET_STD]["train"].values[0] == pytest.approx(float(x.std()), rel=0.01)
    shown = [event.what for event in made.events_of(SampleShown)]
    assert len(shown) == 2
    assert shown[0].targets == str(int(y[shown[0].index]))
