"""Changes to the graph of the loss, to augmentation and to labels alter what they name alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from holter.lab.changes import TappedChange
from holter.lab.changes.augmentation import AUGMENTATION_OFF
from holter.lab.changes.graph import CUTS_OFF, hidden_term, without_term
from holter.lab.changes.membership import ALL_IN_OPTIMIZER
from holter.lab.changes.swaps import LABELS_SHUFFLED
from holter.lab.randomness import RandomState


def under(change: TappedChange, function: Callable[[], Any]) -> tuple[Any, int]:
    """Call a function under a change; return its result and how often something was altered."""
    altered: list[int] = []
    with change.entered(lambda: altered.append(1)):
        result = function()
    return result, len(altered)


class Cut(nn.Module):
    """A model whose body gets no gradient."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.body, self.head, self.how = nn.Linear(3, 4), nn.Linear(4, 1), how

    def forward(self, x: Tensor) -> Tensor:
        features = self.body(x).relu()
        if self.how == "detach":
            features = features.detach()
        elif self.how == "data":
            features = features.data
        result: Tensor = self.head(features)
        return result


def gradient_of(model: Cut) -> Callable[[], Tensor | None]:
    def backward() -> Tensor | None:
        model.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        return model.body.weight.grad

    return backward


def test_gradients_pass_where_a_result_is_detached() -> None:
    for how in ("detach", "data"):
        torch.manual_seed(0)
        model = Cut(how)
        assert gradient_of(model)() is None
        gradient, altered = under(CUTS_OFF, gradient_of(model))
        assert altered
        model.how = "nothing"
        assert torch.equal(gradient, gradient_of(model)())  # type: ignore[arg-type]
        model.how = how
        assert gradient_of(model)() is None


def test_what_is_detached_outside_the_model_or_without_gradients_stays_so() -> None:
    model = Cut("nothing")
    outside, altered = under(CUTS_OFF, lambda: model(torch.ones(2, 3)).detach())
    assert not outside.requires_grad
    with torch.no_grad():
        _, without = under(CUTS_OFF, lambda: Cut("detach")(torch.ones(2, 3)))
    assert altered == without == 0


def terms(weight: Tensor) -> tuple[float, Tensor]:
    """Return the loss of three terms, and the gradient."""
    weight.grad = None
    loss = (weight - 1).square().sum() + 10 * weight.sum()
    loss = loss - 3 * weight.abs().sum()
    loss.backward()
    assert weight.grad is not None
    return loss.item(), weight.grad.clone()


def test_each_term_of_a_loss_is_left_out_or_hidden() -> None:
    weight = torch.full((2,), 2.0, requires_grad=True)
    values = (2.0, 40.0, -12.0)  # of each term
    gradients = (2.0, 10.0, -3.0)
    total, gradient = terms(weight)
    for number, (value, slope) in enumerate(zip(values, gradients, strict=True), start=1):
        (loss, rest), altered = under(without_term(number), lambda: terms(weight))
        assert altered == 1
        assert loss == total - value
        assert torch.equal(rest, gradient - slope)
        (loss, whole), altered = under(hidden_term(number), lambda: terms(weight))
        assert altered == 1
        assert loss == total - value
        assert torch.equal(whole, gradient)
    _, altered = under(without_term(4), lambda: terms(weight))
    assert altered == 0


def test_terms_are_the_same_in_every_step() -> None:
    weight = torch.full((2,), 2.0, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)

    def steps() -> list[float]:
        losses = []
        for _ in range(3):
            losses.append(terms(weight)[0])
            optimizer.step()
        return losses

    losses, altered = under(without_term(2), steps)
    assert altered == 3
    assert losses == [-10.0] * 3


def test_sums_without_gradients_and_of_batches_are_no_terms() -> None:
    weight = torch.ones(2, requires_grad=True)

    def loss() -> Tensor:
        total = weight.sum().detach() + weight.sum()
        return total + (weight + weight).sum() * 0 + sum([weight.sum()])

    _, altered = under(without_term(3), loss)
    assert altered == 1  # the sum of batches, its product with 0, and that of the list


class Images(Dataset[Any]):
    """Samples that a transform or a flag makes random."""

    def __init__(self, transform: Any = None, *, augment: bool = False) -> None:
        self.transform, self.augment = transform, augment

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        image = np.full(4, float(index))
        if self.augment:
            image = image + np.random.normal(size=4)
        return torch.as_tensor(image if self.transform is None else self.transform(image))


class Jitter:
    """A random transform with a generator of its own."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(0)

    def __call__(self, image: Any) -> Any:
        return image + self._generator.normal(size=image.shape)


class Compose:
    """Transforms, one after another."""

    def __init__(self, *transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


def scaled(image: Any) -> Any:
    return image / 2


def batches(dataset: Dataset[Any], workers: int = 0) -> Callable[[], Tensor]:
    return lambda: torch.cat(list(DataLoader(dataset, batch_size=4, num_workers=workers)))


def test_random_transforms_are_left_out_and_others_stay() -> None:
    plain = torch.arange(8.0, dtype=torch.float64)[:, None].expand(8, 4)
    transform = Compose(Jitter(), scaled, torch.as_tensor)
    dataset = Images(transform)
    samples, altered = under(AUGMENTATION_OFF, batches(Subset(dataset, range(8))))
    assert altered == 8
    assert torch.equal(samples, plain / 2)
    assert dataset.transform is transform
    assert torch.equal(batches(dataset)(), batches(Images(Compose(Jitter(), scaled)))())


def test_a_flag_of_the_data_set_is_switched_off() -> None:
    dataset = Images(augment=True)
    samples, altered = under(AUGMENTATION_OFF, batches(dataset))
    assert altered
    assert torch.equal(samples[:, 0], torch.arange(8.0, dtype=torch.float64))
    assert dataset.augment


def test_a_transform_that_is_not_random_alters_nothing() -> None:
    dataset = Images(Compose(scaled))
    random = RandomState.now()
    loader = DataLoader(dataset, batch_size=4, generator=torch.Generator().manual_seed(0))
    samples, altered = under(AUGMENTATION_OFF, lambda: torch.cat(list(loader)))
    after = RandomState.now()
    assert altered == 0
    assert torch.equal(after.host, random.host)
    assert after.python == random.python
    assert torch.equal(samples, batches(dataset)())


def test_validation_keeps_its_transforms() -> None:
    with torch.no_grad():
        _, altered = under(AUGMENTATION_OFF, batches(Images(Jitter())))
    assert altered == 0


def test_shuffled_labels_stay_with_their_samples() -> None:
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 4), torch.randn(32, 3), torch.arange(32) % 4
    seen: list[dict[bytes, int]] = []

    def epochs() -> None:
        for _ in range(2):
            given: dict[bytes, int] = {}
            for rows, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
                losses = functional.cross_entropy(model(rows), labels, reduction="none")
                every = -model(rows).log_softmax(1).detach()
                near = (every - losses.detach()[:, None]).abs().argmin(1)
                given |= {r.numpy().tobytes(): int(n) for r, n in zip(rows, near, strict=True)}
            seen.append(given)

    _, altered = under(LABELS_SHUFFLED, epochs)
    assert altered == 8
    assert seen[0] == seen[1]
    true = {r.numpy().tobytes(): int(n) for r, n in zip(x, y, strict=True)}
    assert seen[0] != true


def test_targets_that_do_not_vary_are_no_labels() -> None:
    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    _, altered = under(LABELS_SHUFFLED, lambda: functional.mse_loss(model(x), torch.ones(8, 1)))
    assert altered == 0


class Listed(nn.Module):
    """A model that keeps its layers in a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(3, 3)]
        self.head = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.layers[0](x))
        return result


def test_layers_in_a_plain_list_are_trained() -> None:
    model = Listed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.layers[0].weight.detach().clone()

    def step() -> None:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    _, altered = under(ALL_IN_OPTIMIZER, step)
    assert altered == 2
    assert not torch.equal(model.layers[0].weight, before)
    assert len(optimizer.param_groups[0]["params"]) == 2
