"""Readers of weight averages, schedule units, floored progress, and twins without a pattern."""

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


STEP_LR = "scheduler = StepLR(optimizer, {})\n"
CYCLE = "scheduler = OneCycleLR(optimizer, 0.1, total_steps={})\n"
SCHEDULED = "scheduler.step()\n"
EMA = (
    "for a, b in zip(ema.parameters(), model.parameters()):\n"
    "    a.mul_({0}).add_(b, alpha=1 - {0})\n"
)
RUN = (
    "for step in range({}):\n    loss = model(x).sum()\n    loss.backward()\n    optimizer.step()\n"
)
NORMED = module(init="self.last = nn.BatchNorm1d(4)")
FOUND = {
    "slow average": (
        RUN.format(300) + indent(EMA.format("0.9999"), "    "),
        "decay = 0.999\n" + RUN.format(400) + indent(EMA.format("decay"), "    "),
        "ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9995))\n" + RUN.format(90),
    ),
    "average without buffers": (
        NORMED + EMA.format("0.9") + "ema.eval()\n",
        NORMED + EMA.format("0.9") + "print(accuracy(ema, loader))\n",
    ),
    "scheduler by batch": (
        trained(STEP_LR.format("3"), inside=SCHEDULED),
        trained("scheduler = MultiStepLR(optimizer, [10, 20], gamma=0.1)", inside=SCHEDULED),
        trained("sched = ExponentialLR(optimizer, gamma=0.9)", inside="sched.step()\n"),
    ),
    "scheduler by epoch": (
        trained(CYCLE.format("5 * len(loader)"), after=SCHEDULED),
        trained("steps = 5 * len(train_loader)\n" + CYCLE.format("steps"), after=SCHEDULED),
        trained("scheduler = CosineAnnealingLR(optimizer, T_max=5 * len(loader))", after=SCHEDULED),
    ),
    "rounded share": (
        "t = torch.randint(0, steps, (9,))\nshare = t // steps\n",
        "for step in range(total_steps):\n    beta = step // total_steps\n",
    ),
}
NOT_FOUND = {
    "slow average": (
        RUN.format(300) + indent(EMA.format("0.99"), "    "),
        RUN.format("count()") + indent(EMA.format("0.9999"), "    "),
        "decay = min(0.9999, (1 + n) / (10 + n))\n"
        + RUN.format(300)
        + indent(EMA.format("decay"), "    "),
    ),
    "average without buffers": (
        NORMED
        + EMA.format("0.9")
        + "for a, b in zip(ema.buffers(), model.buffers()):\n    a.copy_(b)\nema.eval()\n",
        module(init="self.last = nn.LayerNorm(4)") + EMA.format("0.9") + "ema.eval()\n",
        NORMED + EMA.format("0.9") + "target = ema(x)\n",
    ),
    "scheduler by batch": (
        trained(STEP_LR.format("3"), after=SCHEDULED),
        trained(STEP_LR.format("1000"), inside=SCHEDULED),
        trained(STEP_LR.format("1, gamma=0.999"), inside=SCHEDULED),
        trained(STEP_LR.format("3"), inside="if last:\n    scheduler.step()\n"),
    ),
    "scheduler by epoch": (
        trained(CYCLE.format("5 * len(loader)"), inside=SCHEDULED),
        trained("total_steps = 5\n" + CYCLE.format("total_steps"), after=SCHEDULED),
        trained("scheduler = CosineAnnealingLR(optimizer, T_max=5)", after=SCHEDULED),
    ),
    "rounded share": (
        "t = torch.randint(0, steps, (9,))\nshare = t / steps\n",
        "t = torch.randint(0, steps, (9,))\nrow = table[t // steps]\n",
        "for step in range(total_steps):\n    epoch = step // per_epoch\n",
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
