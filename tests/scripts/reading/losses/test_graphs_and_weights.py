"""Losses without a graph, learned weights and temperatures."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


STEP = """
for x, a, b in loader:
    out = net(x)
    {}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    "made",
    [
        "loss = torch.tensor([F.mse_loss(out, a), F.cross_entropy(out, b)]).sum()",
        "la = mse(out, a)\n    loss = torch.tensor([la.item(), 1.0], requires_grad=True).mean()",
        "p = torch.tensor([mse(out, a).item(), 1])\n    loss = (torch.exp(-s) * p + s).sum()",
        "loss = torch.tensor(F.mse_loss(out, a).item(), requires_grad=True)",
    ],
)
def test_losses_keep_their_graph(made: str) -> None:
    assert "loss without graph" in kinds(STEP.format(made))
    right = made.replace("torch.tensor(", "torch.stack(").replace(".item()", "")
    assert "loss without graph" not in kinds(STEP.format(right))
    shown = "loss = F.mse_loss(out, a)\n    seen = torch.tensor([F.mse_loss(out, a)])"
    assert not kinds(STEP.format(shown))


@pytest.mark.parametrize(
    ("made", "is_wrong"),
    [
        ("for k in range(3):\n        loss = w[k] * losses[k]", True),
        ("for name, t in tasks.items():\n        loss = F.cross_entropy(out[name], t)", True),
        ("for t in heads:\n        loss = criterion(t(out), b) * 0.5", True),
        ("loss = F.mse_loss(out, a)\n    loss = F.cross_entropy(out, b)", True),
        ("loss = 0\n    for k in range(3):\n        loss = loss + w[k] * losses[k]", False),
        ("loss = F.mse_loss(out, a)\n    loss = loss + F.cross_entropy(out, b)", False),
        ("for k in range(3):\n        out = layer[k](out)\n        loss = mse(out, a[k])", False),
        ("for k in range(3):\n        loss = mse(out[k], a)\n        losses.append(loss)", False),
    ],
)
def test_losses_are_not_overwritten(made: str, is_wrong: bool) -> None:
    assert ("overwritten loss" in kinds(STEP.format(made))) == is_wrong


MARKED = """
model = Net()
opt = torch.optim.Adam({})
for x, y in loader:
    with torch.no_grad():
        z = model(x)
    {}
    loss = contrast(z)
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("marks", ["z.requires_grad_()", "z.requires_grad = True"])
def test_results_without_graph_are_not_marked(marks: str) -> None:
    assert kinds(MARKED.format("model.parameters()", marks)) == {"marked again"}
    assert not kinds(MARKED.format("head.parameters()", marks))
    grads = MARKED.format("model.parameters()", marks) + "    model(x).backward(z.grad)\n"
    assert not kinds(grads)


WEIGHED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(2))
def train(net, a, b):
    s = net.log_var
    losses = torch.stack([F.mse_loss(a, b), F.cross_entropy(a, b)])
    loss = {}
    loss.backward()
train(Net(), a, b)
"""


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("(torch.exp(-s) * losses).sum()", "weights without penalty"),
        ("torch.exp(-s[0]) * losses[0] + torch.exp(-s[1]) * losses[1]", "weights without penalty"),
        ("(0.5 * torch.exp(-net.log_var) * losses).mean()", "weights without penalty"),
        ("((-s).exp() * losses).sum()", "weights without penalty"),
        ("(torch.exp(s) * losses + s).sum()", "sign of weights"),
        ("(s.exp() * losses).sum() + s.sum()", "sign of weights"),
        ("torch.exp(s[0]) * losses[0] + s[0]", "sign of weights"),
        ("(torch.exp(-s) * losses + s).sum()", ""),
        ("(torch.exp(-s) * losses).sum() + 0.5 * s.sum()", ""),
        ("(torch.exp(s) * losses - s).sum()", ""),
        ("torch.exp(-s[0]) * losses[0] + s[0]", ""),
    ],
)
def test_learned_weights_have_a_penalty(loss: str, kind: str) -> None:
    assert kinds(WEIGHED.format(loss)) == ({kind} if kind else set())


DISTILLED = """
def kd_loss(student_logits, teacher_logits, labels, T):
    soft = F.kl_div(F.log_softmax(student_logits / T, 1), F.softmax({}, 1){}) * T ** 2
    hard = F.cross_entropy({}, {})
    return soft + hard
kd_loss(a, b, c, 4.0)
"""
MEAN = ', reduction="batchmean"'


@pytest.mark.parametrize(
    ("teacher", "reduction", "scores", "labels", "kind"),
    [
        ("teacher_logits", MEAN, "student_logits", "labels", "one-sided temperature"),
        ("teacher_logits / T", MEAN, "student_logits / T", "labels", "softened labels"),
        ("teacher_logits / T", "", "student_logits", "labels", ""),  # its weight may be made for it
        ("teacher_logits / T", MEAN, "student_logits", "labels", ""),
        ("teacher_logits / T", MEAN, "student_logits / T", "teacher_probs", ""),
        ("teacher_logits / T", ', reduction="sum"', "student_logits", "labels", ""),
        ("teacher_logits / T", ', reduction="none"', "student_logits", "labels", ""),
    ],
)  # fmt: skip
def test_temperatures_and_reductions(
    teacher: str, reduction: str, scores: str, labels: str, kind: str
) -> None:
    text = DISTILLED.format(teacher, reduction, scores, labels)
    assert kinds(text) == ({kind} if kind else set())
