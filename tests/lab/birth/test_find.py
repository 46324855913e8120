"""What `find` tells, what it leaves as it was, and when it says nothing."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import SGD, Adam

from holter.lab.birth import find


class Net(nn.Module):
    """Two layers and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def test_a_traced_step_is_the_step_itself_bit_for_bit() -> None:
    torch.manual_seed(0)
    model, x = Net(), torch.randn(6, 4)
    twin = copy.deepcopy(model)
    optimizer, other = Adam(model.parameters(), fused=True), Adam(twin.parameters(), fused=False)
    optimizer.param_groups[0]["foreach"] = None
    torch.manual_seed(1)
    assert find(lambda: model(x).pow(2).mean(), {"": model}, [optimizer], samples=6) is None
    after = torch.get_rng_state()
    torch.manual_seed(1)
    other.param_groups[0]["foreach"] = False
    twin(x).pow(2).mean().backward()
    other.step()
    assert torch.equal(after, torch.get_rng_state())
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a.grad, b.grad)


def test_nothing_is_left_behind() -> None:
    model, x = Net(), torch.randn(6, 4)
    optimizer = Adam(model.parameters(), fused=True)
    find(lambda: model(x).log().mean(), {"": model}, [optimizer], samples=6)
    find(lambda: model(x).mean(), {"": model}, [optimizer], samples=6)
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert optimizer.param_groups[0]["fused"] is True
    assert not hasattr(GradScaler.scale, "holter_tap")
    assert torch._C._len_torch_dispatch_stack() == 0


def test_operands_and_those_who_passed_it_on_are_told() -> None:
    torch.manual_seed(0)
    model, x = Net().eval(), torch.rand(6, 4)
    x[2, 1] = 0

    def step() -> Tensor:
        logs = x.log()
        return model(logs).mean()

    birth = find(step, {"": model}, samples=6)
    assert birth is not None
    (operand,) = birth.operands
    assert (operand.name, operand.shape, operand.dtype) == ("x", (6, 4), "float32")
    assert (operand.low, operand.zeros, operand.nonfinite) == (0.0, 1, 0)
    assert 0 < operand.high <= 1
    assert (birth.count, birth.of, birth.positions) == (1, 24, ((2, 1),))
    assert birth.line == "logs = x.log()"
    assert birth.module == ""
    assert birth.passed_on == 4
    assert birth.passed_to == ("body.0", "body.1", "head")
    assert "`x.log()`" in birth.says
    assert "sample 2" in birth.says


def test_the_range_of_half_precision_is_told() -> None:
    model = nn.Linear(2, 1, bias=False).half()
    with torch.no_grad():
        model.weight.fill_(2)
    x = torch.full((3, 2), 20000.0).half()
    birth = find(lambda: model(x).float().mean(), {"": model}, samples=3)
    assert birth is not None
    assert birth.kind == "half range"
    assert birth.headroom == pytest.approx(20000 / 65504, rel=1e-3)
    assert "8e+04" in birth.says


def test_a_model_in_a_mapping_gives_its_name_to_modules() -> None:
    generator, critic = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    x = torch.full((3, 2), 1e30)

    def step() -> Tensor:
        return critic(generator(x) * 1e10).mean()

    birth = find(step, {"generator": generator, "critic": critic}, samples=3)
    assert birth is not None
    assert birth.operation == "mul"
    assert birth.passed_to[0] == "critic.0"


def test_an_error_that_is_not_about_a_nan_is_raised() -> None:
    model, x = nn.Linear(2, 2), torch.zeros(3, 2)

    def step() -> Tensor:
        x.log().mean()
        raise KeyError("labels")

    with pytest.raises(KeyError):
        find(step, {"": model}, samples=3)


def test_an_assertion_about_a_nan_is_a_birth() -> None:
    model, x = nn.Linear(2, 2), torch.zeros(3, 2)

    def step() -> Tensor:
        loss = (model(x) * 0).log().mean()
        assert torch.isfinite(loss)
        return loss

    birth = find(step, {"": model}, samples=3)
    assert birth is not None
    assert (birth.operation, birth.phase) == ("log", "forward")


def test_an_assertion_while_all_is_finite_is_raised() -> None:
    model = nn.Linear(2, 2)

    def step() -> Tensor:
        raise AssertionError

    with pytest.raises(AssertionError):
        find(step, {"": model})


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_anomaly_mode_does_not_hide_the_birth() -> None:
    model, x = nn.Linear(2, 2, bias=False), torch.zeros(3, 2)
    with torch.autograd.detect_anomaly():
        birth = find(lambda: model(x).square().sum(1).sqrt().mean(), {"": model}, samples=3)
    assert birth is not None
    assert (birth.node, birth.kind) == ("SqrtBackward0", "root at zero")


def test_an_update_that_clips_does_not_overflow() -> None:
    model, x = nn.Linear(3, 1), torch.ones(4, 3)
    optimizer = Adam(model.parameters())

    def step() -> Tensor:
        return model(x).sum() * 1e25

    def update() -> None:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    birth = find(step, {"": copy.deepcopy(model)}, [Adam(model.parameters())])
    assert birth is not None
    assert birth.phase == "update"
    assert "exp_avg_sq" in birth.says
    assert find(step, {"": model}, [optimizer], update=update) is None


def test_a_scale_that_is_small_already_is_no_excuse() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(2, 2).half(), torch.randn(3, 2).half()
    scaler = GradScaler("cpu", init_scale=1.0)

    def step() -> Tensor:
        return scaler.scale((model(x) * 60000 / 4e4).float().sum() * 6e4)

    birth = find(step, {"": model}, [SGD(model.parameters(), 0.1)], samples=3)
    assert birth is not None
    assert (birth.kind, birth.phase) == ("half range", "backward")


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_a_learning_rate_that_is_nan_is_told(kind: type[SGD] | type[Adam]) -> None:
    model, x = nn.Linear(2, 1), torch.ones(3, 2)
    optimizer = kind(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = math.nan
    birth = find(lambda: model(x).mean(), {"": model}, [optimizer], samples=3)
    assert birth is not None
    assert (birth.phase, birth.kind, birth.module) == ("update", "bad setting", "Linear")
    assert "nan" in birth.says


def test_the_expression_of_a_long_line_is_found() -> None:
    model, x, y = nn.Linear(2, 2), torch.ones(3, 2), torch.tensor([1.0, 0.0, 1.0])[:, None]

    def step() -> Tensor:
        return (
            model(x).sigmoid().log()
            + (model(x) / y)
            + model(x).tanh()
        ).mean()  # fmt: skip

    birth = find(step, {"": model}, samples=3)
    assert birth is not None
    assert birth.line == "+ (model(x) / y)"
    assert birth.samples == (1,)
    assert "`model(x) / y`" in birth.says


def test_memory_that_was_filled_unseen_is_no_input() -> None:
    model, x = nn.Linear(2, 2), torch.ones(3, 2)

    def step() -> Tensor:
        scratch = torch.empty(3, 2)
        scratch.numpy()[:] = math.nan  # as a kernel of the user's own would
        return (model(x) + scratch).mean()

    birth = find(step, {"": model}, samples=3)
    assert birth is not None
    assert (birth.kind, birth.operands[0].name) == ("unknown", "scratch")
    assert "no operation of torch has written" in birth.says


def test_an_epsilon_that_was_lost_earlier_is_not_blamed() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(2, 2).half(), torch.rand(3, 2).half()

    def step() -> Tensor:
        scaled = model(x + 1e-8).abs() * 3
        return (scaled * 0).log().float().mean()

    birth = find(step, {"": model}, samples=3)
    assert birth is not None
    assert birth.kind == "log of zero"


def test_a_batch_of_one_is_sample_0_unless_weights_are_spoiled() -> None:
    model, x = nn.Linear(2, 2), torch.ones(1, 2)
    birth = find(lambda: (model(x) * 0).log().mean(), {"": model}, samples=1)
    assert birth is not None
    assert birth.samples == (0,)
    with torch.no_grad():
        model.weight[0] = math.nan
    birth = find(lambda: model(x).mean(), {"": model}, samples=1)
    assert birth is not None
    assert (birth.kind, birth.samples, birth.operands[0].name) == ("spoiled weights", (), "weight")


def test_a_loss_of_several_elements_is_averaged() -> None:
    model, x = nn.Linear(2, 1, bias=False), torch.ones(3, 2)
    x[1] = 0
    birth = find(lambda: model(x).square().sqrt()[:, 0], {"": model}, samples=3)
    assert birth is not None
    assert (birth.operation, birth.samples) == ("sqrt", (1,))


def test_an_infinite_learning_rate_is_no_mask() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = float("inf")
    found = find(lambda: model(x).pow(2).mean(), {"": model}, (optimizer,), samples=8)
    assert found is not None and found.phase == "update"
    assert "alpha = -inf" in found.says


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (lambda p: p.log().sum(), ("log of zero", "backward", "log")),
        (lambda p: (1 / p).sum(), ("division by zero", "forward", "reciprocal")),
        (lambda p: (2.0 * p.log() / 2.0).sum(), ("log of zero", "backward", "log")),
    ],
    ids=["log", "quotient", "inside"],
)
def test_next_to_a_singularity_is_at_it(
    loss: Callable[[Tensor], Tensor], told: tuple[str, str, str]
) -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1e-42)
    birth = find(lambda: loss(model(torch.ones(1, 1))), {"": model}, samples=1)
    assert birth is not None
    assert (birth.kind, birth.phase, birth.operation) == told


def test_a_singular_matrix_has_the_logarithm_of_zero() -> None:
    model, x = nn.Linear(3, 2), torch.ones(4, 3)

    def step() -> Tensor:
        centred = model(x) - model(x).mean(0)
        return -torch.linalg.slogdet(centred.T @ centred)[1]

    birth = find(step, {"": model}, samples=4)
    assert birth is not None
    assert (birth.operation, birth.kind) == ("slogdet", "log of zero")


@pytest.mark.parametrize("centred", [False, True])
def test_a_logarithm_of_zero_before_a_softmax_is_no_mask(*, centred: bool) -> None:
    """A NaN that a softmax is given was born before it."""
    torch.manual_seed(0)
    model, x, labels = nn.Linear(4, 3), torch.rand(6, 4), torch.randint(3, (6,))
    x[2] = 0

    def step() -> Tensor:
        features = x.log()
        if centred:
            features = features - features.mean(1, keepdim=True)
        return nn.functional.cross_entropy(model(features), labels)

    birth = find(step, {"": model}, samples=6)
    assert birth is not None
    assert (birth.operation, birth.kind, birth.samples) == ("log", "log of zero", (2,))


def test_a_negative_determinant_is_named_by_what_the_script_calls() -> None:
    model, x = nn.Linear(2, 4), torch.ones(3, 2)
    nn.init.zeros_(model.weight)
    model.bias.data = torch.tensor([1.0, 2.0, 2.0, 1.0])

    def step() -> Tensor:
        return torch.logdet(model(x).view(3, 2, 2)).mean()

    birth = find(step, {"": model}, samples=3)
    assert birth is not None
    assert (birth.operation, birth.kind) == ("logdet", "outside domain")
    assert "negative determinant" in birth.says
