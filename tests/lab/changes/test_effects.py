"""What changes do while they are applied."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.changes.activations import LAST_ACTIVATION_OFF
from holter.lab.changes.clipping import CLIPPING_OFF, clip_to
from holter.lab.changes.data import SHUFFLED_LOADER, UNWEIGHTED_LOSS
from holter.lab.changes.dropout import DROPOUT_OFF
from holter.lab.changes.learning_rate import learning_rate_times
from holter.lab.changes.modes import FROZEN_EVAL, TRAIN_MODE
from holter.lab.changes.optimizer import LINE_SEARCH
from holter.lab.changes.precision import FLOAT32
from holter.lab.changes.weights import EDITS_LEFT_OUT
from holter.lab.setup import Setup


class Attention(nn.Module):
    """Calls attention with all of its arguments by position, as some models do."""

    def __init__(self, dropout: float = 0.5) -> None:
        super().__init__()
        self.project = nn.Linear(4, 4)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        h = self.project(x)
        attended: Tensor = functional.scaled_dot_product_attention(
            h, h, h, None, self.dropout, True
        )
        return attended


def of(model: nn.Module, lr: float = 0.1) -> Setup:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return Setup.of(model, optimizer, lambda m, batch: m(batch).sum(), [torch.ones(2, 2)])


def test_attention_without_dropout_is_causal_still() -> None:
    torch.manual_seed(0)
    model, x = Attention(), torch.randn(1, 5, 4)
    assert not torch.equal(model(x), model(x))
    with DROPOUT_OFF.on_setup.applied(of(model)):
        outputs = model(x)
        later = x.clone()
        later[:, 3:] = 0.0
        assert torch.equal(model(later)[:, :3], outputs[:, :3])
    assert torch.equal(outputs, Attention.forward(_without(model), x))


def _without(model: Attention) -> Attention:
    model.dropout = 0.0
    return model


def test_recurrent_layers_drop_nothing() -> None:
    torch.manual_seed(0)
    model, x = nn.LSTM(4, 8, num_layers=3, dropout=0.5), torch.randn(6, 2, 4)
    assert not torch.equal(model(x)[0], model(x)[0])
    with DROPOUT_OFF.on_setup.applied(of(model)):
        assert torch.equal(model(x)[0], model(x)[0])
    assert model.dropout == 0.5


def test_functions_and_layers_drop_nothing() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            return functional.dropout(self.drop(self.body(x)), 0.5)

    model, x = Both(), torch.ones(3, 4)
    with DROPOUT_OFF.on_setup.applied(of(model)):
        assert torch.equal(model(x), model.body(x))


def weights_after(setup: Setup) -> Tensor:
    setup.step(*setup.batches(1))
    return setup.model.weight.detach().clone()  # type: ignore[union-attr,return-value,operator]


def linear(lr: float = 0.1) -> Setup:
    torch.manual_seed(0)
    return of(nn.Linear(2, 1, bias=False), lr)


def test_a_factor_outlasts_a_schedule_that_sets_the_rate() -> None:
    setup, slower = linear(), linear(0.05)
    (group,) = setup.optimizers[0].param_groups
    with learning_rate_times(0.5).applied(setup) as changed:
        group["lr"] = 0.1  # as a scheduler does
        after = weights_after(changed)
        assert group["lr"] == 0.1
    assert group["lr"] == 0.1
    assert torch.equal(after, weights_after(slower))


def test_a_rate_that_is_a_tensor_is_changed_in_place() -> None:
    setup = linear()
    rate = torch.tensor(0.1)
    setup.optimizers[0].param_groups[0]["lr"] = rate
    with learning_rate_times(0.5).applied(setup) as changed:
        after = weights_after(changed)
    torch.testing.assert_close(after, weights_after(linear(0.05)))
    assert setup.optimizers[0].param_groups[0]["lr"] is rate
    assert rate == torch.tensor(0.1)


def test_clipping_replaces_that_of_the_training() -> None:
    start = linear().model.weight.detach().clone()  # type: ignore[union-attr,operator]
    setup = linear(1.0)
    with clip_to(0.5).applied(setup) as changed:
        assert abs(float((weights_after(changed) - start).norm()) - 0.5) < 1e-5
        clipped = weights_after(changed)
        with CLIPPING_OFF.on_setup.applied(changed) as unclipped:
            assert float((weights_after(unclipped) - clipped).norm()) > 1


def test_half_precision_weights_and_moments_are_widened_and_narrow_afterwards() -> None:
    model = nn.Linear(2, 1).to(torch.bfloat16)
    setup = Setup.of(
        model,
        torch.optim.Adam(model.parameters()),
        lambda m, batch: m(batch).sum(),
        [torch.ones(2, 2, dtype=torch.bfloat16)],
    )
    setup.step(*setup.batches(1))
    moments = setup.optimizers[0].state[model.weight]
    with FLOAT32.applied(setup) as changed:
        assert {each.dtype for each in model.parameters()} == {torch.float32}
        changed.step(*changed.batches(1))
        assert moments["exp_avg"].dtype is torch.float32
    assert {each.dtype for each in model.parameters()} == {torch.bfloat16}
    assert moments["exp_avg"].dtype is torch.bfloat16


def test_the_last_activation_is_left_out_as_module_and_as_function() -> None:
    class Squeezed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.head(x)).squeeze(-1)

    x = torch.randn(5, 4)
    model, squeezed = (
        nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), nn.Tanh()),
        Squeezed(),
    )
    with LAST_ACTIVATION_OFF.on_setup.applied(of(model)):
        assert torch.equal(model(x), model[:3](x))
        assert torch.equal(squeezed(x), squeezed.head(x)[:, 0])
    assert torch.equal(model(x), model[:3](x).tanh())


def test_only_loaders_of_training_are_shuffled_and_restored() -> None:
    torch.manual_seed(0)
    data = TensorDataset(torch.arange(64.0))
    train, valid = DataLoader(data, 8), DataLoader(data, 8)
    with SHUFFLED_LOADER.on_setup.applied(linear()):
        batches = torch.cat([x for (x,) in train])
        with torch.no_grad():
            assert torch.equal(torch.cat([x for (x,) in valid]), torch.arange(64.0))
    assert not torch.equal(batches, torch.arange(64.0))
    assert torch.equal(batches.sort().values, torch.arange(64.0))
    assert torch.equal(torch.cat([x for (x,) in train]), torch.arange(64.0))


def test_frozen_modules_are_in_eval_mode_while_they_are_called() -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).requires_grad_(False)
    model, x = nn.Sequential(body, nn.Linear(4, 2)), torch.randn(3, 4)
    altered: list[None] = []
    with FROZEN_EVAL.entered(lambda: altered.append(None)):
        assert torch.equal(model(x), model(x))
        assert torch.equal(body(x), body(x))  # as a teacher is called
    assert len(altered) == 4
    assert body.training
    assert not torch.equal(model(x), model(x))


def test_frozen_modules_stay_in_eval_mode_while_the_rest_is_in_train_mode() -> None:
    body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).requires_grad_(False)
    head = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model = nn.Sequential(body, head).eval()
    modes: dict[str, bool] = {}
    for name, module in (("body", body[1]), ("head", head[1])):
        module.register_forward_hook(lambda m, *_, name=name: modes.update({name: m.training}))
    with TRAIN_MODE.entered(lambda: None):
        model(torch.randn(8, 4))
    assert modes == {"body": False, "head": True}
    assert not any(module.training for module in model.modules())


def test_a_loss_is_computed_without_weights_and_smoothing() -> None:
    torch.manual_seed(0)
    given, target = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 1])
    weight = torch.tensor([1.0, 5.0, 0.1])
    altered: list[None] = []
    with UNWEIGHTED_LOSS.entered(lambda: altered.append(None)):
        changed = nn.CrossEntropyLoss(weight, label_smoothing=0.2)(given, target)
        plain = nn.CrossEntropyLoss()(given, target)
    assert torch.equal(changed, functional.cross_entropy(given, target))
    assert torch.equal(changed, plain)
    assert len(altered) == 1


def test_lbfgs_searches_for_the_length_of_a_step() -> None:
    """A quartic from far away: the plain step of length 1 leads further off."""
    weight = nn.Parameter(torch.tensor([3.0]))
    optimizer = torch.optim.LBFGS([weight], lr=1.0, max_iter=4)
    losses: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (weight**4 + 1e3 * weight**2).sum()
        loss.backward()
        losses.append(loss.item())
        return loss

    altered: list[bool] = []
    with LINE_SEARCH.entered(lambda: altered.append(True)):
        optimizer.step(closure)
    assert altered
    assert min(losses) < 1e-3 * losses[0]
    assert optimizer.param_groups[0]["line_search_fn"] is None


def test_what_a_script_writes_to_weights_between_steps_is_taken_back() -> None:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    altered: list[bool] = []
    with EDITS_LEFT_OUT.entered(lambda: altered.append(True)):
        for step in range(3):
            loss = model(torch.ones(4, 2)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert len(altered) == max(step - 1, 0)
            left = model.weight.detach().clone()
            if step:
                nn.init.constant_(model.weight, torch.nan)
            with torch.no_grad():  # a validation sees what the script wrote
                assert bool(model(torch.ones(4, 2)).isnan().all()) == (step > 0)
        model(torch.ones(4, 2))
    assert torch.equal(model.weight, left)
