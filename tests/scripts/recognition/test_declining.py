"""What cannot be repeated is declined: by file, line and statement, with what to write instead."""

import sys
from typing import Any

import pytest
from forms import HEAD_LINES

from holter.record.errors import HolterError
from holter.scripts.recognition import NotRecognisedError
from holter.scripts.recognition.declining import declined, with_callback

DECLINED = {
    "reads a clock": (
        5,
        "noise",
        """
import time
for x, y in train_loader:
    out = model(x)
    noise = out * (time.perf_counter() % 1)
    loss = F.cross_entropy(noise, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "draws its batch in the forward pass": (
        4,
        "next(source)",
        """
source = iter(train_loader)
for step in range(8):
    loss = F.cross_entropy(model(next(source)[0]), torch.zeros(16).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "nothing is updated": (
        4,
        "no weights changed",
        """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
""",
    ),
    "updates that no optimizer makes": (
        4,
        "neither SGD nor Adam",
        """
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        for each in model.parameters():
            each -= 100 * each.grad**3
            each.grad = None
""",
    ),
    "no module": (
        6,
        "torch.nn.Module",
        """
weight = torch.randn(6, 3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for x, y in train_loader:
    loss = F.cross_entropy(x @ weight, y)
    loss.backward()
    optimizer.step()
""",
    ),
    "one model after another": (
        8,
        "`net`",
        """
nets = [nn.Linear(6, 3), nn.Linear(6, 3)]
optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in nets]
for x, y in train_loader:
    for net, optimizer in zip(nets, optimizers):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "a graph from before the loop": (
        7,
        "before the step",
        """
for x, y in train_loader:
    out = model(x)
    optimizer.zero_grad()
    for part in (0, 1):
        loss = F.cross_entropy(out[part::2], y[part::2])
        loss.backward(retain_graph=True)
    optimizer.step()
""",
    ),
    "a backward that only a library may call": (
        19,
        "cannot be called separately",
        """
allowed = False


def strict(module, inputs, output):
    def check(gradient):
        if not allowed:
            raise RuntimeError("call it through us")

    output.register_hook(check)


model.register_forward_hook(strict)
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    allowed = True

    loss.backward()
    allowed = False
    optimizer.step()
""",
    ),
    "a single step": (
        4,
        "needs two complete ones",
        """
for x, y in list(train_loader)[:1]:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""",
    ),
}


@pytest.mark.parametrize("name", DECLINED)
def test_the_statement_is_named(recognised: Any, name: str) -> None:
    line, word, source = DECLINED[name]
    with pytest.raises(NotRecognisedError) as caught:
        recognised(source)
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(f"train.py:{HEAD_LINES + line}: `")
    assert word in first
    assert rest[-3].strip() == "def setup():"
    assert "holter.Setup.of(" in rest[-1]


def test_what_to_do_fits_the_reason(recognised: Any) -> None:
    for name, advice in {
        "nothing is updated": "optimizer.step()",
        "updates that no optimizer makes": "torch.optim.SGD(",
        "no module": "torch.nn.Parameter",
        "one model after another": "Select one of the models",
        "a single step": "--seconds 60",
        "reads a clock": "Write a setup function",
    }.items():
        with pytest.raises(NotRecognisedError) as caught:
            recognised(DECLINED[name][2])
        _, *rest = str(caught.value).splitlines()
        assert advice in rest[0], name
    with pytest.raises(NotRecognisedError, match="Pass the arguments that make the script train"):
        recognised("print('nothing to train')")


LIBRARY = """
from torch.nn import functional as F


class Accelerator:
    def backward(self, loss):
        loss = loss / 1
        loss.backward()


def compute(model, x, y):
    return F.cross_entropy(model(x), y)


def fit(model, optimizer, loader):
    for inputs in loader:
        loss = compute(model, *inputs)
        del inputs
        Accelerator().backward(loss)
        optimizer.step()


class Result:
    def __init__(self, loss):
        self.loss = loss / 1


def fit_module(module, optimizer, loader):
    for index, batch in enumerate(loader):

        def closure():
            result = Result(module.training_step(batch, index)["loss"])
            optimizer.zero_grad()
            finish(result.loss, None)
            return result

        optimizer.step(closure)


def fit_closely(model, optimizer, loader):
    for x, y in loader:
        finish(prepared(compute(model, x, y)), optimizer)


def prepared(loss):
    return loss


def finish(loss, optimizer):
    loss = prepared(loss)
    loss.backward()
    if optimizer is not None:
        optimizer.step()
"""


def test_libraries_that_train(recognised: Any, tmp_path: Any) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "somebodys.py").write_text(LIBRARY)
    begin = f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport somebodys\n"
    loop = """
accelerator = somebodys.Accelerator()
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
"""
    found = recognised(begin + loop)
    assert found.exact
    assert found.setup.source.endswith("train.py:19")
    found = recognised(f"{begin}somebodys.fit(model, optimizer, train_loader)\n")
    assert found.exact
    assert set(found.setup.batches(1)[0]) == {"inputs"}
    module = """
class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.seen = model, []

    def training_step(self, batch, index):
        x, y = batch
        loss = self.compute(x, y)
        self.seen.append(loss.item())
        return {"loss": loss, "index": index}

    def compute(self, x, y):
        return F.cross_entropy(self.net(x), y)


somebodys.fit_module(Module(), optimizer, train_loader)
"""
    found = recognised(begin + module)
    assert found.exact
    assert set(found.setup.batches(1)[0]) == {"x", "y", "index"}
    assert found.setup.valid is not None
    with pytest.raises(NotRecognisedError, match=r"train.py:15: .somebodys.fit_closely\("):
        recognised(f"{begin}somebodys.fit_closely(model, optimizer, train_loader)\n")


def test_a_fault_of_recognition_itself_is_one_sentence(
    recognised: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holter.scripts.recognition import session

    def broken(*_: object) -> None:
        raise KeyError("nobody expected this")

    monkeypatch.setattr(session, "locate", broken)
    with pytest.raises(NotRecognisedError, match="nobody expected this"):
        recognised("""
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""")


@pytest.mark.parametrize(
    ("source", "kind"), [("x =", "SyntaxError"), ("raise OSError('no data')", "OSError")]
)
def test_a_script_that_breaks_before_it_trains_is_told(
    recognised: Any, source: str, kind: str
) -> None:
    with pytest.raises(HolterError, match=f"train.py ended with {kind} before its first") as caught:
        recognised(source)
    assert not isinstance(caught.value, NotRecognisedError)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("transformers.trainer", "transformers"),
        ("lightning.pytorch.trainer", "lightning"),
        ("pytorch_lightning.trainer", "lightning"),
    ],
)
def test_the_callback_of_a_framework_is_a_way_out(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("transformers.trainer", "lightning.pytorch.trainer", "pytorch_lightning.trainer"):
        monkeypatch.delitem(sys.modules, each, raising=False)
    refusal = declined("train.py:7: `trainer.fit(model)` cannot be repeated")
    assert with_callback(refusal) is refusal
    monkeypatch.setitem(sys.modules, module, sys)
    told = str(with_callback(refusal))
    assert told.startswith(str(refusal))
    assert f"from holter.integrations.{name} import HolterCallback" in told
