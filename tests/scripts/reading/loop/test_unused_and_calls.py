"""Readers of unused, calls, and twins without a pattern."""

import ast
from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read

STEP = "loss = criterion(model(x), y)\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"


def trained(before: str = "", *, inside: str = "", step: str = STEP, after: str = "") -> str:
    """A script that trains over epochs of batches."""
    body = dedent(inside) + step
    loops = "for epoch in range(5):\n    for x, y in loader:\n"
    return f"{dedent(before)}\n{loops}{indent(body, ' ' * 8)}\n{indent(dedent(after), '    ')}"


def module(*, forward: str = "return self.last(x)", init: str = "", method: str = "") -> str:
    """A model that is built."""
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + indent(dedent(init) + "\n", " " * 8)
        + "    def forward(self, x):\n"
        + indent(dedent(forward) + "\n", " " * 8)
        + indent(dedent(method), "    ")
        + "\nmodel = Net()\n"
    )


def function(body: str, arguments: str = "x, y") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(a, b)\n"


LOSSES = "ce = nn.CrossEntropyLoss()\n"
TWO = "shape, colour = model(x)\nloss = ce(shape, y[0]) + ce({}, y[1])\nloss.backward()\n"
STEP_LR = "scheduler = StepLR(optimizer, {})\n"
SCHEDULED = "scheduler.step()\n"
SAMPLED = "sampler = WeightedRandomSampler(weights, len(weights))"
FOUND = {
    "unused sampler": (
        trained(f"{SAMPLED}\nloader = DataLoader(data, shuffle=True)"),
        function(f"{SAMPLED}\nloader = DataLoader(data)\n{trained()}"),
    ),
    "unused scheduler": (
        trained(STEP_LR.format("30"), after="print(scheduler.get_last_lr())"),
        function(f"warmup = get_linear_schedule_with_warmup(optimizer, 9, 99)\n{trained()}"),
        trained("cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)"),
    ),
    "unused weights": (
        trained("class_weights = 1.0 / counts\ncriterion = nn.CrossEntropyLoss()"),
        trained("pos_weight = torch.tensor([9.0])\ncriterion = nn.BCEWithLogitsLoss()"),
    ),
    "unused term": (
        trained(inside="kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()\n"),
        trained(LOSSES, inside="aux = ce(model.aux(x), y)\n"),
        function("penalty = model.weight.abs().sum()\n" + STEP),
    ),
    "unused head": (
        LOSSES + trained(step=TWO.format("shape") + "optimizer.step()\n"),
        trained(step=TWO.replace("ce(", "F.cross_entropy(").format("shape") + "optimizer.step()\n"),
    ),
    "unapplied initialisation": (
        module(method="def init_weights(self):\n    nn.init.zeros_(self.last.weight)") + trained(),
        "def init_weights(m):\n    m.weight.data.normal_(0, 0.02)\n" + module() + trained(),
    ),
    "discarded": (
        function("mean = self.average(x)\nmean.detach()\nreturn mean"),
        function("mean = Mean(x).item()\nloss.clamp(0, 1)\nreturn mean"),
    ),
}
NOT_FOUND = {
    "unused sampler": (
        trained(f"{SAMPLED}\nloader = DataLoader(data, sampler=sampler)"),
        SAMPLED,
        SAMPLED + "\ndef fit():\n" + indent(trained(), "    "),  # another file may import it
    ),
    "unused scheduler": (
        trained(STEP_LR.format("30"), after=SCHEDULED),
        trained(STEP_LR.format("30") + "fit(model, optimizer, scheduler)"),
        trained(
            "warmup = LinearLR(optimizer)\nboth = SequentialLR(optimizer, [warmup])\nuse(both)"
        ),
    ),
    "unused weights": (
        trained("class_weights = 1.0 / counts\ncriterion = nn.CrossEntropyLoss(class_weights)"),
        trained("weight = 1.0 / counts"),
    ),
    "unused term": (
        trained(
            inside="kl = (mu**2).sum()\nloss = first(x) + kl\nloss.backward()\n", step="o.step()"
        ),
        trained(inside="with torch.no_grad():\n    aux_loss = (model(x) - y).sum()\n"),
        trained(after="val_loss = (model(a) - b).sum()"),
        trained(after="loss_held = F.mse_loss(model(a), b)"),
    ),
    "unused head": (
        LOSSES + trained(step=TWO.format("colour") + "optimizer.step()\n"),
        LOSSES + trained(step="out, _ = model(x)\nloss = ce(out, y)\nloss.backward()\no.step()\n"),
    ),
    "unapplied initialisation": (
        module(
            init="self.init_weights()",
            method="def init_weights(self):\n    nn.init.zeros_(self.last.weight)",
        )
        + trained(),
        "def init_weights(m):\n    m.weight.data.normal_()\n"
        + module()
        + "model.apply(init_weights)\n"
        + trained(),
        module(method="def init_hidden(self):\n    return torch.zeros(9)") + trained(),
    ),
    "discarded": (
        "memory = Memory(8).to(device)\n" + trained(inside="memory.detach()\n"),
        function("mean = self.average(x).detach()\nreturn mean"),
    ),
}


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_a_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_ordinary_code_is_none(kind: str, text: str) -> None:
    ast.parse(text)
    assert kind not in kinds(text)


def test_each_pattern_has_twins() -> None:
    assert FOUND.keys() == NOT_FOUND.keys()
    assert all(len(texts) >= 2 for texts in (*FOUND.values(), *NOT_FOUND.values()))
