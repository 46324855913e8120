"""How the best weights are chosen."""

import pytest

from holter.scripts.reading.splits import model_selection
from tests.scripts.reading.found import kinds_by

_LOOP = """
for epoch in range(9):
    losses = []
    for x, y in train_loader:
        loss = f(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    {figures}
    if {test}:
        {keep}
        torch.save(model.state_dict(), "best.pt")
"""


def _loop(figures: str, test: str, keep: str) -> str:
    return "val_loader = DataLoader(val_set)\n" + _LOOP.format(
        figures=figures, test=test, keep=keep
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            _loop("acc = evaluate(model, test_loader)", "acc > best", "best = acc"),
            "chosen on test",
        ),
        (
            _loop("val_loss, _ = evaluate(test_mask)", "val_loss < best", "best = val_loss"),
            "chosen on test",
        ),
        (
            _loop("m = evaluate(model, loaders['test'])", "m['f1'] > best", "best = m['f1']"),
            "chosen on test",
        ),
        (
            _loop(
                "val_loss = evaluate(model, val_loader)",
                "np.mean(losses) < best",
                "best = np.mean(losses)",
            ),
            "chosen on training",
        ),
        (
            _loop(
                "mean = sum(losses) / 9; val_acc = evaluate(model, val_loader)",
                "mean < best",
                "best = mean",
            ),
            "chosen on training",
        ),
        (
            _loop(
                "loss_now = np.mean(losses); score = evaluate(model, val_loader); print(score)",
                "best > loss_now",
                "best = loss_now",
            ),
            "chosen on training",
        ),
    ],
)
def test_it_finds_weights_that_are_chosen_otherwise(text: str, kind: str) -> None:
    assert kind in kinds_by(text, model_selection)


@pytest.mark.parametrize(
    "text",
    [
        _loop("acc = evaluate(model, val_loader)", "acc > best", "best = acc"),
        _loop(
            "acc = evaluate(model, val_loader); t = evaluate(model, test_loader)",
            "acc > best",
            "best = acc",
        ),
        _loop(
            "val_loss = evaluate(model, val_loader); stopper.step(val_loss)",
            "np.mean(losses) < best",
            "best = np.mean(losses)",
        ),
        _loop(
            "val_loss = evaluate(model, val_loader)", "val_loss < best - 1e-3", "best = val_loss"
        ),
        _loop("acc = evaluate(model, test_loader)", "acc > best", "best = acc").replace(
            "val_loader = DataLoader(val_set)", ""
        ),
    ],
)
def test_it_is_silent_about_a_choice_by_validation(text: str) -> None:
    assert not kinds_by(text, model_selection)
