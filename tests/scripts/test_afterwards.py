"""What `holter run` examines after a script has ended, on real scripts."""

from pathlib import Path

import pytest
from launched import Ended, holter_run, python

from holter import Run, check
from holter.diagnosis.facts.data_sets import measured
from holter.record.events import ExperimentMade, NotApplicable
from holter.record.signals import DATASET_EXAMINED, VAL_LOSS

MORE = pytest.mark.exhaustive  # other sides of what a test shows in every run

LANGUAGE = """\
import torch
from torch import nn
torch.manual_seed(0)

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(8, 16), nn.Linear(16, 8)
        self.query = nn.Linear(16, 16)
    def forward(self, tokens):
        x = self.embed(tokens)
        q = self.query(x)
        return self.head(nn.functional.scaled_dot_product_attention(q, x, x{causal}))

def train():
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(60):
        text = torch.randint(8, (16, 13))
        logits = model(text[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 8), text[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(float(loss))

train()
"""

DECODER = """\
import torch
from torch import nn
torch.manual_seed(0)

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(8, 16)
    def forward(self, text):
        return self.table(text)

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(8, 16), nn.Linear(16, 8)
    def forward(self, text, memory, kind):
        queries = self.table(text)
        weights = (queries @ memory.transpose(1, 2)).softmax({axis})
        return self.head(queries + weights @ memory) + kind[:, None, None] * {weight}

encoder, decoder = Encoder(), Decoder()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 0.01)
for step in range(30):
    text, target = torch.randint(8, (16, 9)), torch.randint(8, (16, 13))
    logits = decoder(target[:, :-1], encoder(text), torch.randint(3, (16,)))
    loss = nn.functional.cross_entropy(logits.reshape(-1, 8), target[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

SERIES = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset
torch.manual_seed(0)
x = torch.randn(240, 9, 3)
y = (x[:, :, 0].mean(1) > 0).long()
everything = TensorDataset(x, y)
train, valid = {split}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 16{batch_first}), nn.Linear(16, 2)
    def forward(self, x):
        return self.head(self.rnn(x)[0].mean(1))

for fold in range({folds}):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    train_loader = DataLoader(train(fold), 16, shuffle=True)
    valid_loader = DataLoader(valid(fold), 16)
    for epoch in range(6):
        model.train()
        for a, b in train_loader:
            loss = nn.functional.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for loader in {evaluated}:
                total = sum(nn.functional.cross_entropy(model(a), b).item() for a, b in loader)
                print(epoch, total / len(loader))
"""
TABLE = """\
import torch
from torch import nn
torch.manual_seed(0)
effect = 2 * torch.randn(12)
city, x = torch.randint(12, (1200,)), torch.randn(1200, 5)
y = effect[city] + x[:, 0] + 0.5 * torch.randn(1200)
code = torch.cat([city[:900], {validation}])

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.city, self.head = nn.Embedding(12, 4), nn.Linear(9, 1)
    def forward(self, code, x):
        return self.head(torch.cat([self.city(code), x], 1)).squeeze(1)

model = Net()
optimizer = torch.optim.Adam(model.parameters(), 0.02)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(900).split(30):
        loss = nn.functional.mse_loss(model(code[rows], x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        predicted = model(code[900:], x[900:])
        again = model(code[:900], x[:900])
    print(epoch, nn.functional.mse_loss(predicted, y[900:]).item())
"""
APART = "lambda f: Subset(everything, range(200)), lambda f: Subset(everything, range(200, 240))"
SHARED = "lambda f: Subset(everything, range(200)), lambda f: Subset(everything, range(170, 240))"
FOLDS = (
    "lambda f: Subset(everything, [i for i in range(240) if i % 3 != f]),"
    " lambda f: Subset(everything, range(f, 240, 3))"
)


def series(
    *,
    split: str = APART,
    batch_first: str = ", batch_first=True",
    folds: int = 1,
    evaluated: str = "(valid_loader,)",
) -> str:
    return SERIES.format(split=split, batch_first=batch_first, folds=folds, evaluated=evaluated)


def ran(here: Path, script: str, *options: str) -> tuple[Ended, Run]:
    (here / "train.py").write_text(script)
    ended = holter_run(*options, "--out", "run", "train.py", cwd=here)
    return ended, Run.load(here / "run")


def found(run: Run) -> set[str]:
    return {finding.rule for finding in check(run).findings}


@pytest.mark.parametrize(
    ("causal", "leaks"), [("", True), pytest.param(", is_causal=True", False, marks=MORE)]
)
def test_later_inputs_that_leak_are_found(here: Path, *, causal: str, leaks: bool) -> None:
    _, run = ran(here, LANGUAGE.format(causal=causal))
    assert ("leaking-future" in found(run)) is leaks
    assert "causality" in {event.what.experiment for event in run.events_of(ExperimentMade)}


@pytest.mark.parametrize(("axis", "weight", "rule"), [(1, 1, "leaking-future"), (2, 0, "unused")])
def test_the_model_that_the_loss_is_made_of_is_examined(
    here: Path, axis: int, weight: int, rule: str
) -> None:
    """Not the encoder, which is called first: weights over all queries show later ones."""
    _, run = ran(here, DECODER.format(axis=axis, weight=weight))
    assert {"leaking-future", "unused-inputs"} & found(run) == {
        name for name in ("leaking-future", "unused-inputs") if name.startswith(rule)
    }


def test_a_recurrent_layer_over_the_batch_is_found(here: Path) -> None:
    assert "mixed-samples" in found(ran(here, series(batch_first=""))[1])


CLONING = """\
import torch
from torch import nn
torch.manual_seed(0)
seen = torch.randn(400, 20, 6)
actions = seen[..., :2].cumsum(1).tanh()

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(6, 32{batch_first}), nn.Linear(32, 2)
    def forward(self, x):
        return self.out(self.rnn(x)[0])

def main():
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
    for epoch in range(8):
        order = torch.randperm(400)
        for start in range(0, 400, 25):
            index = order[start : start + 25]
            loss = ((policy(seen[index]) - actions[index]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(float(loss))

main()
"""


@MORE
@pytest.mark.parametrize(("batch_first", "mixes"), [("", True), (", batch_first=True", False)])
def test_an_index_of_the_script_tells_samples_from_time(
    here: Path, *, batch_first: str, mixes: bool
) -> None:
    _, run = ran(here, CLONING.format(batch_first=batch_first))
    assert ("mixed-samples" in found(run)) is mixes


@pytest.mark.parametrize(
    "options",
    [
        {},
        # The validation data of one fold are trained on in others.
        pytest.param({"split": FOLDS, "folds": 3}, marks=MORE),
        pytest.param({"evaluated": "(train_loader, valid_loader)"}, marks=MORE),
        {"evaluated": "(valid_loader, DataLoader(train(0), 16))"},
    ],
    ids=["plain", "folds", "training-data-too", "training-data-by-another-loader"],
)
def test_a_healthy_script_gets_no_finding(here: Path, options: dict[str, object]) -> None:
    ended, run = ran(here, series(**options))
    assert not found(run) & {"overlapping-splits", "mixed-samples", "leaking-features"}
    assert len(ended.err.splitlines()) <= 6


def test_samples_in_both_splits_are_found(here: Path) -> None:
    assert "overlapping-splits" in found(ran(here, series(split=SHARED))[1])


@pytest.mark.parametrize(
    ("validation", "is_found"),
    [pytest.param("city[900:]", False, marks=MORE), ("(city[900:] + 5) % 12", True)],
)
def test_rows_without_a_loader_are_examined(here: Path, *, validation: str, is_found: bool) -> None:
    _, run = ran(here, TABLE.format(validation=validation))
    (losses,) = run[VAL_LOSS].values()
    assert len(losses) == 6
    assert 100 < (measured(run, DATASET_EXAMINED, "train") or 0) <= 900  # each of them once
    assert 100 < (measured(run, DATASET_EXAMINED, "valid") or 0) <= 300
    assert ("inconsistent-columns" in found(run)) is is_found
    assert not found(run) & {"overlapping-splits", "leaking-features", "related-splits"}


@pytest.mark.parametrize("momentum", [pytest.param(0.1, marks=MORE), 0.001])
def test_running_statistics_that_are_off_are_found(here: Path, momentum: float) -> None:
    norm = f"        self.norm = nn.BatchNorm1d(16, momentum={momentum})\n"
    script = series().replace("    def forward", f"{norm}    def forward")
    script = script.replace("self.rnn(x)[0].mean(1)", "self.norm(30 * self.rnn(x)[0].mean(1) + 50)")
    assert norm in script
    assert ("eval-mode-gap" in found(ran(here, script)[1])) is (momentum < 0.1)


@pytest.mark.parametrize(
    ("split", "shared"), [(SHARED, True), pytest.param(APART, False, marks=MORE)]
)
def test_validation_without_a_loss_function(here: Path, *, split: str, shared: bool) -> None:
    by_hand = "sum((model(a).argmax(1) == b).sum().item() for a, b in loader)"
    script = series(split=split, evaluated="(valid_loader, DataLoader(train(0), 16))").replace(
        "sum(nn.functional.cross_entropy(model(a), b).item() for a, b in loader)", by_hand
    )
    assert by_hand in script
    assert ("overlapping-splits" in found(ran(here, script)[1])) is shared


def test_nothing_is_examined_unasked(here: Path) -> None:
    _, run = ran(here, series(batch_first=""), "--no-afterwards")
    assert not run.events_of(ExperimentMade)
    assert "mixed-samples" not in found(run)


def test_the_output_is_the_same_and_the_model_prints_no_more(here: Path) -> None:
    script = series().replace(
        "        return self.head", '        print("called")\n        return self.head'
    )
    ended, _ = ran(here, script)
    plain = python("train.py", cwd=here)
    assert ended.out == plain.out


def test_what_is_done_at_exit_finds_the_model_as_the_script_left_it(here: Path) -> None:
    norm = "        self.norm = nn.BatchNorm1d(16)\n"
    script = series().replace("    def forward", f"{norm}    def forward")
    script = script.replace("self.rnn(x)[0].mean(1)", "self.norm(self.rnn(x)[0].mean(1))")
    script += """
import atexit
atexit.register(lambda: print(
    [float(value.double().sum()) for value in model.state_dict().values()],
    model.training, torch.rand(1),
))
"""
    ended, run = ran(here, script)
    assert run.events_of(ExperimentMade)
    assert ended.out == python("train.py", cwd=here).out


def test_a_data_set_that_blocks_or_fails_after_the_end_is_left_alone(here: Path) -> None:
    script = series().replace(
        "everything = TensorDataset(x, y)\n",
        "class Closing(TensorDataset):\n"
        "    closed = False\n"
        "    def __getitem__(self, index):\n"
        "        while self.closed:\n"
        "            pass\n"
        "        return super().__getitem__(index)\n"
        "everything = Closing(x, y)\n",
    )
    ended, run = ran(here, script + "everything.closed = True\n")
    assert ended.code == 0
    reasons = {event.what.experiment: event.what.why for event in run.events_of(NotApplicable)}
    assert "after the script had ended" in reasons["augmentation"]  # which reads it first
    assert reasons["baseline"]  # for which no time or no rows are left
    assert "pairing" in {event.what.experiment for event in run.events_of(ExperimentMade)}
    assert run.meta.status == "finished"
