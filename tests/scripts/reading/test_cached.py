"""Kept outputs, constants of bytes, choices on test data and unused weights in sources."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


KEPT = """
def loaders():
    return DataLoader(data, 64{}), DataLoader(held, 64)
def distill(teacher, student):
    train_dl, val_dl = loaders()
    with torch.no_grad():
        kept = [teacher(x) for x, _ in train_dl]
    for epoch in range(9):
        {}
        loss.backward()
distill(a, b)
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for t, (x, y) in zip(kept, train_dl): loss = kd(student(x), t)",
        "for i, (x, y) in enumerate(train_dl): loss = kd(student(x), kept[i])",
        "for i, (t, (x, y)) in enumerate(zip(kept, train_dl)): loss = kd(student(x), t)",
    ],
)
def test_kept_outputs_of_a_shuffled_loader(loop: str) -> None:
    assert "cache by number" in kinds(KEPT.format(", shuffle=True", loop))
    assert "cache by number" not in kinds(KEPT.format("", loop))
    assert "cache by number" not in kinds(KEPT.format(", shuffle=False", loop))


@pytest.mark.parametrize("means", ["(129.3, 124.1, 112.4)", "[123.675, 116.28, 103.53]", "MEAN"])
def test_constants_of_bytes(means: str) -> None:
    text = "MEAN = (129.3, 124.1, 112.4)\ntf = T.Compose([{}, T.Normalize({}, (68.2, 65.4, 70.4))])"
    assert "constants of bytes" in kinds(text.format("T.ToTensor()", means))
    assert not kinds(text.format("T.PILToTensor()", means))
    assert not kinds(text.format("T.ToTensor()", "(0.5, 0.4, 0.4)"))
    assert not kinds(text.format("T.ToTensor()", "(0, 0, 0)"))
    assert not kinds(text.format("T.ToTensor(), T.Lambda(lambda x: x * 255)", means))


CHOSEN = """
val_loader, test_loader = loaders()
for epoch in range(9):
    {}
    if {}:
        best = acc
        torch.save(model.state_dict(), "best.pt")
"""


@pytest.mark.parametrize(
    ("figure", "test"),
    [
        ("acc = accuracy(model, test_loader)", "acc > best"),
        ("acc = evaluate(model, test_loader)['acc']", "best < acc"),
        ("acc = model.score(test_loader)", "acc >= best_acc"),
    ],
)
def test_weights_are_not_chosen_on_test(figure: str, test: str) -> None:
    assert "chosen on test" in kinds(CHOSEN.format(figure, test))
    assert "chosen on test" not in kinds(CHOSEN.format(figure.replace("test_", "val_"), test))
    none = CHOSEN.replace("val_loader, ", "").format(figure, test)
    assert "chosen on test" not in kinds(none)


@pytest.mark.parametrize(
    ("use", "is_wrong"),
    [
        ("print(len(state))", True),
        ("pass", True),
        ("print(f'{len(state)} tensors')", True),
        ("model.load_state_dict(state)", False),
        ("restore(model, state)", False),
        ("epoch = state['epoch']", False),
    ],
)
def test_weights_of_files_are_loaded(use: str, is_wrong: bool) -> None:
    text = f"state = torch.load('teacher_ckpt.pt')\n{use}\n"
    assert ("unused weights of file" in kinds(text)) == is_wrong


def test_averages_have_the_buffers_of_the_model() -> None:
    text = """
net, avg = Net(nn.BatchNorm1d(3)), Net(nn.BatchNorm1d(3))
avg.load_state_dict(net.state_dict())
avg.eval()
for x in loader:
    for pa, pn in zip(avg.parameters(), net.parameters()):
        pa.mul_(0.9).add_(pn, alpha=0.1)
    {}
"""
    assert "average without buffers" in kinds(text.format("pass"))
    copied = "for a, b in zip(avg.buffers(), net.buffers()): a.copy_(b)"
    assert "average without buffers" not in kinds(text.format(copied))
    assert "average without buffers" not in kinds(text.format("avg.load_state_dict(state)"))
