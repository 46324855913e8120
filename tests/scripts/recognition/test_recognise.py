"""What is handed over: the training as it was at first, its phases, its data; nothing goes on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from forms import HEAD
from torch import nn

from holter.lab.batches import tensors
from holter.record import Run
from holter.record.signals import LOSS
from holter.scripts.recognition import NotRecognisedError, Recognised, session

LOOP = """
for epoch in range(50):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


def test_models_and_optimizers_are_as_before_the_first_step(recognised: Any) -> None:
    found = recognised("""
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
first = [each.detach().clone() for each in model.state_dict().values()]
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
""")
    model = found.setup.model
    first = sys.modules["__main__"].__dict__["first"]
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), first, strict=True))
    (optimizer,) = found.setup.optimizers
    assert not optimizer.state
    assert optimizer.param_groups[0]["lr"] == 1e-2
    assert [type(each).__name__ for each in found.setup.schedulers] == ["StepLR"]
    assert found.setup.schedulers[0].last_epoch == 0
    assert model.training


def test_the_weights_that_were_reached_are_kept(recognised: Any) -> None:
    found = recognised(
        """
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
last = [each.detach().clone() for each in model.state_dict().values()]
""",
        steps=None,
    )
    last = sys.modules["__main__"].__dict__["last"]
    (reached,) = found.setup.reached.values()
    assert all(torch.equal(a, b) for a, b in zip(reached.values(), last, strict=True))
    assert not all(
        torch.equal(a, b)
        for a, b in zip(found.setup.model.state_dict().values(), last, strict=True)
    )


def test_the_run_holds_the_first_steps(recognised: Any) -> None:
    found = recognised(LOOP, steps=9)
    run = Run.load(found.path)
    assert len(run[LOSS][""].values) == 9
    assert run.meta.status == "finished"


def test_batches_are_those_the_script_used(recognised: Any) -> None:
    source = """
used = []
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    used.append(x.clone())
    loss.backward()
    optimizer.step()
    x.zero_()
"""
    found = recognised(source)
    used = sys.modules["__main__"].__dict__["used"]
    seen = [batch["x"] for batch in found.setup.train]
    assert len(seen) == 5  # of the second to the sixth step
    assert all(torch.equal(a, b) for a, b in zip(seen, used[1:], strict=False))


def test_another_batch_has_another_loss_and_the_scripts_variables_stay(recognised: Any) -> None:
    def look(found: Recognised) -> tuple[float, float, bool]:
        names = sys.modules["__main__"].__dict__
        before = {name: id(each) for name, each in names.items()}
        one, other = found.setup.batches(2)
        losses = [float(found.setup.loss(each).detach()) for each in (one, other)]
        return *losses, {name: id(each) for name, each in names.items()} == before

    first, second, unchanged = recognised(LOOP, look=look)
    assert first != second
    assert unchanged


def test_validation_batches_go_the_way_of_training_batches(recognised: Any) -> None:
    found = recognised("""
for x, y in train_loader:
    x = 3 * x.view(len(x), -1)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""")
    names = sys.modules["__main__"].__dict__
    assert found.setup.loaders == {"train": names["train_loader"], "valid": names["valid_loader"]}
    first = next(iter(found.setup.valid))
    assert torch.equal(first["x"], 3 * names["X"][128:160])
    assert torch.equal(first["y"], names["Y"][128:160])
    assert torch.equal(found.setup.prepare((names["X"], names["Y"]))["x"], 3 * names["X"])


@pytest.mark.parametrize("name", ["unlabelled", "value_loader", "extra_loader"])
def test_a_second_loader_of_another_name_is_no_validation_loader(
    recognised: Any, name: str
) -> None:
    found = recognised(f"""
{name} = valid_loader
del valid_loader
{LOOP}""")
    assert set(found.setup.loaders) == {"train"}
    assert found.setup.valid is None


@pytest.mark.parametrize(
    "holder", ["valloader = {}", "loaders = dict(val={})", "dl_test = {}", "evalDataLoader = {}"]
)
def test_a_validation_loader_may_belong_to_a_caller(recognised: Any, holder: str) -> None:
    found = recognised(f"""
def train_epoch(batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def main():
    train = DataLoader(TensorDataset(X[:96], Y[:96]), batch_size=16)
    {holder.format("DataLoader(TensorDataset(X[96:128], Y[96:128]), batch_size=16)")}
    train_epoch(train)


del train_loader, valid_loader
main()
""")
    assert torch.equal(next(iter(found.setup.valid))["x"], sys.modules["__main__"].X[96:112])


def test_batches_drawn_by_the_script_are_no_validation_batches(recognised: Any) -> None:
    found = recognised("""
source = iter(train_loader)
for step in range(7):
    x, y = next(source)
    x = x + 1
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
    assert found.exact
    assert found.setup.valid is None
    assert any("validation loader" in each for each in found.notes)


def test_of_two_trainings_it_is_the_second(recognised: Any) -> None:
    found = recognised(
        """
encoder = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU())
decoder = nn.Linear(8, 6)
first = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
for x, _ in train_loader:
    first.zero_grad()
    F.mse_loss(decoder(encoder(x)), x).backward()
    first.step()
del first

model = nn.Sequential(encoder, nn.Linear(8, 3))
encoder.requires_grad_(False)
optimizer = torch.optim.Adam(model[1].parameters(), lr=1e-2)
for epoch in range(9):
    encoder.eval()
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
        steps=14,
    )
    assert found.exact
    (phase,) = found.setup.phases
    assert [type(each) for each in phase.optimizers] == [torch.optim.Adam]
    assert found.setup.model is sys.modules["__main__"].model


def test_a_gan_has_two_phases(recognised: Any) -> None:
    found = recognised("""
G, D = nn.Linear(2, 6), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(G.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(D.parameters(), lr=1e-3)
for epoch in range(9):
    for real, _ in train_loader:
        z = torch.randn(len(real), 2)
        optimizer_d.zero_grad()
        loss_real = F.softplus(-D(real)).mean()
        loss_real.backward()
        fake = G(z)
        loss_fake = F.softplus(D(fake.detach())).mean()
        loss_fake.backward()
        nn.utils.clip_grad_norm_(D.parameters(), 0.5)
        optimizer_d.step()

        z = torch.randn(8, 2)
        optimizer_g.zero_grad()
        loss_g = F.softplus(-D(G(z))).mean()
        loss_g.backward()
        optimizer_g.step()
""")
    names = sys.modules["__main__"].__dict__
    one, other = found.setup.phases
    assert found.exact
    assert (one.optimizers, other.optimizers) == ((names["optimizer_d"],), (names["optimizer_g"],))
    assert (one.max_norm, other.max_norm) == (0.5, None)
    assert {len(each) for each in tensors(found.setup.batches(1))} == {16, 8}
    assert set(found.setup.models.values()) == {names["G"], names["D"]}
    before = [each.detach().clone() for each in names["G"].parameters()]
    found.setup.step(found.setup.batches(1)[0])
    after = names["G"].parameters()
    assert not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_accumulation_clipping_and_scale(recognised: Any) -> None:
    found = recognised(
        """
scaler = torch.amp.GradScaler("cpu")
for epoch in range(20):
    for i, (x, y) in enumerate(train_loader):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y) / 4
        scaler.scale(loss).backward()
        if i % 4 == 3:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.7)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""
    )
    (phase,) = found.setup.phases
    assert found.exact
    assert found.setup.accumulation == 4
    assert phase.max_norm == 0.7
    assert phase.scaler is sys.modules["__main__"].__dict__["scaler"]


def test_clipping_after_the_step_is_none(recognised: Any) -> None:
    late = LOOP + "        nn.utils.clip_grad_norm_(model.parameters(), 0.7)\n"
    assert recognised(late).setup.phases[0].max_norm is None


def test_backward_twice_is_taken_once_and_told(recognised: Any) -> None:
    twice = "loss.backward(retain_graph=True)\n        loss.backward()"
    found = recognised(LOOP.replace("loss.backward()", twice))
    assert found.exact
    assert len(found.setup.phases) == 1
    assert any("again on the same loss" in each for each in found.notes)


def test_copies_of_the_model_are_kept_safe(recognised: Any) -> None:
    source = "import copy\naverage = copy.deepcopy(model)\n" + LOOP
    found = recognised(source)
    average = sys.modules["__main__"].__dict__["average"]
    assert any(each is average for each in found.setup.others)
    assert all(each is not average for each in found.setup.models.values())


def test_optimizers_made_anew_stand_for_the_first(recognised: Any) -> None:
    made = (
        "optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\n        optimizer.zero_grad()"
    )
    found = recognised(LOOP.replace("optimizer.zero_grad()", made))
    assert len(found.setup.optimizers) == 1


@pytest.mark.parametrize("end", ["raise ValueError('no more')", "raise SystemExit(3)", "break"])
def test_a_script_that_ends_early_is_taken_as_far_as_it_came(
    recognised: Any, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = recognised(f"""
for step, (x, y) in enumerate(train_loader):
    if step == 4:
        {end}
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""")
    assert found.exact
    assert len(found.setup.train) == 3
    assert ("ValueError: no more" in capsys.readouterr().err) == ("ValueError" in end)


def test_time_is_limited(recognised: Any) -> None:
    slow = "import time\n" + LOOP + "        time.sleep(0.02)\n"
    found = recognised(slow, steps=10_000, seconds=0.3)
    assert 1 <= len(found.setup.train) < 20


def test_a_step_of_many_calls_is_waited_for(
    recognised: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_GRACE", 1000)  # the machine may be slow
    found = recognised(
        """
x, y = next(iter(train_loader))
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=1e-3, max_iter=90, tolerance_grad=0, tolerance_change=0
)
for epoch in range(3):
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
""",
        seconds=0.05,
    )
    assert found.exact


def test_a_pause_in_validation_is_none_for_the_step(recognised: Any) -> None:
    source = (
        LOOP
        + """
    model.eval()
    with torch.inference_mode():
        for x, y in valid_loader:
            model(x)
"""
    )

    def look(found: Recognised) -> tuple[bool, float]:
        return found.setup.model.training, found.setup.step(found.setup.batches(1)[0])

    training, loss = recognised(source, steps=8, look=look)
    assert training
    assert loss > 0


def test_nothing_is_left_behind(recognised: Any) -> None:
    def mine(*_: object) -> None:
        return None

    original = torch.autograd.backward, sys.gettrace()
    sys.settrace(mine)
    try:
        recognised(LOOP)
        now = sys.gettrace()
    finally:
        sys.settrace(original[1])
    assert now is mine
    assert torch.autograd.backward is original[0]
    assert not nn.modules.module._global_forward_pre_hooks


def test_the_process_ends_there_and_standard_output_is_the_callers(tmp_path: Path) -> None:
    loop = "    ".join(LOOP.splitlines(keepends=True))
    script = (
        HEAD
        + f"""
from pathlib import Path

print("from the script")
try:
{loop}
except BaseException:
    Path("caught").touch()
finally:
    Path("saved").touch()
"""
    )
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "caller.py").write_text(
        """
import json, sys
from holter.scripts.recognition import recognise

def then(found):
    print(json.dumps({"exact": found.exact, "loss": float(found.setup.loss(found.setup.train[0]))}))
    return 7

assert "torch" not in sys.modules
recognise("train.py", ["--flag"], steps=5, then=then)
print("never reached")
"""
    )
    done = subprocess.run(
        [sys.executable, "caller.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert json.loads(done.stdout)["exact"]
    assert "from the script" in done.stderr
    assert not (tmp_path / "saved").exists()
    assert not (tmp_path / "caught").exists()


def test_no_torch_no_training(recognised: Any) -> None:
    with pytest.raises(NotRecognisedError, match="backward"):
        recognised("print('hello')", head="")


def test_one_model_after_another_is_the_last_one(recognised: Any) -> None:
    found = recognised(
        """
layers = [nn.Linear(6, 6), nn.Linear(6, 6)]
optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in layers]


def fit(layer, optimizer):
    for x, _ in train_loader:
        loss = F.mse_loss(layer(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for layer, optimizer in zip(layers, optimizers):
    fit(layer, optimizer)
""",
        steps=100,
    )
    names = sys.modules["__main__"].__dict__
    assert found.exact
    assert found.setup.model is names["layers"][1]
    assert found.setup.optimizers == (names["optimizers"][1],)


def test_updates_by_hand_are_those_of_an_optimizer(recognised: Any) -> None:
    found = recognised(
        LOOP.replace(
            "optimizer.step()",
            """
        for each in model.parameters():
            each.data.sub_(0.25 * each.grad)
""".strip("\n").lstrip(),
        ).replace("optimizer.zero_grad", "model.zero_grad")
    )
    (optimizer,) = found.setup.optimizers
    assert isinstance(optimizer, torch.optim.SGD)
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert any("SGD(lr=0.25)" in note for note in found.notes)


def test_lbfgs_steps_by_its_closure(recognised: Any) -> None:
    from forms import FORMS

    def look(found: Recognised) -> list[float]:
        (batch,) = found.setup.train
        assert found.setup.accumulation == 1
        return [found.setup.step(batch) for _ in range(3)]

    first, second, third = recognised(FORMS["LBFGS with a closure"][1], look=look)
    assert first > second > third
