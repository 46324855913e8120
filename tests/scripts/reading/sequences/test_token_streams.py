"""Streams of tokens in sources: columns, states of chunks, perplexities."""

import pytest

from tests.scripts.reading.found import kinds

STREAM = """
def batchify(ids, batch_size):
    {}
def chunk(source, i):
    return source[i:i + 35], source[i + 1:i + 1 + 35]
"""
N = "n = ids.size(0) // batch_size\n    "


@pytest.mark.parametrize(
    "body",
    [
        N + "return ids[:n * batch_size].view(n, batch_size)",
        N + "ids = ids[:n * batch_size]\n    return ids.reshape(-1, batch_size).contiguous()",
        "n = len(ids) // batch_size\n    return ids[:n * batch_size].reshape(n, batch_size)",
    ],
)
def test_streams_that_are_cut_across(body: str) -> None:
    assert kinds(STREAM.format(body)) == {"crossed columns"}


@pytest.mark.parametrize(
    "body",
    [
        N + "return ids[:n * batch_size].view(batch_size, n).t().contiguous()",
        N + "ids = ids[:n * batch_size].view(batch_size, -1)\n    return ids.t()",
        N + "rows = torch.randperm(len(ids))\n    return rows[:n * batch_size].view(n, batch_size)",
    ],
)
def test_streams_that_are_cut_along(body: str) -> None:
    assert not kinds(STREAM.format(body))


CHUNKS = """
def train(model, data):
    state = model.initial(20)
    for i in range(0, len(data), 35):
        out, state = model(data[i], {})
        criterion(out, y).backward()
def evaluate(model, data):
    {}
    for x, y in data:
        {}
"""


@pytest.mark.parametrize(
    ("trained", "first", "body"),
    [
        ("state", "state = model.initial(10)", "out, _ = model(x, state)"),
        ("detach(state)", "state = None", "out, new = model(x, state)"),
        ("hidden", "hidden = model.initial(10)", "out, _ = model(x, hidden)"),
        ("state", "h = model.initial(10)", "logits, unused = model(x, h)\n        n += len(y)"),
    ],
)
def test_states_that_evaluation_drops(trained: str, first: str, body: str) -> None:
    text = CHUNKS.format(trained, first, body)
    text = text.replace("out, state = model(data[i], hidden)", "out, hidden = model(x, hidden)")
    assert "state not carried" in kinds(text)


@pytest.mark.parametrize(
    ("trained", "first", "body"),
    [
        ("state", "state = model.initial(10)", "out, state = model(x, state)"),
        ("state", "pass", "state = model.initial(10)\n        out, _ = model(x, state)"),
        ("state", "state = model.initial(10)", "out, new = model(x, state)\n        state = new"),
    ],
)
def test_states_that_evaluation_carries(trained: str, first: str, body: str) -> None:
    assert "state not carried" not in kinds(CHUNKS.format(trained, first, body))


LOADED = """
loader = DataLoader(data, batch_size=32, {})
h = None
for x, y in loader:
    {}
    loss.backward()
"""


@pytest.mark.parametrize(
    "body",
    [
        "out, h = model(x, h)\n    h = h.detach()",
        "out, h = model(x, h)\n    h = tuple(s.detach() for s in h)",
        "out, h = model(x, hx=h)",
    ],
)
def test_states_of_shuffled_batches(body: str) -> None:
    assert kinds(LOADED.format("shuffle=True", body)) == {"state across samples"}


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ("shuffle=False", "out, h = model(x, h)\n    h = h.detach()"),
        ("shuffle=True", "h = None\n    out, h = model(x, h)"),
        ("shuffle=True", "h = model.init_hidden(32)\n    out, h = model(x, h)"),
        ("shuffle=True", "out, _ = model(x, h0)"),
    ],
)
def test_states_of_batches_in_order(options: str, body: str) -> None:
    assert "state across samples" not in kinds(LOADED.format(options, body))


PERPLEXITY = """
def evaluate(model, loader):
    total, n, values = 0.0, 0, []
    for x, y in loader:
        loss = criterion(model(x), y)
        {}
    return {}
"""


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("total += math.exp(loss.item())", "total / len(loader)"),
        ("total += torch.exp(loss).item() * len(y)", "total / n"),
        ("values.append(math.exp(loss.item()))", "sum(values) / len(values)"),
        ("ppl = math.exp(loss.item())\n        values.append(ppl)", "np.mean(values)"),
    ],
)
def test_perplexities_that_are_averaged(line: str, last: str) -> None:
    assert "averaged perplexity" in kinds(PERPLEXITY.format(line, last))


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("total += loss.item()", "math.exp(total / len(loader))"),
        ("values.append(math.exp(loss.item()))", "values[-1]"),
        ("total += torch.exp(-loss).item()", "total / len(loader)"),
    ],
)
def test_losses_that_are_averaged(line: str, last: str) -> None:
    assert "averaged perplexity" not in kinds(PERPLEXITY.format(line, last))


FLAGGED = """
for x, y, first in reader:
    {}
    loss(out, y).backward()
for x, y, first in valid:
    h = None if first else h
    out, h = model(x, h)
"""


@pytest.mark.parametrize(
    "body",
    [
        "out, h = model(x, h)",
        "h = None if h is None else h.detach()\n    out, h = model(x, h)",
        "out, aux, h = model(x, h)\n    h = h.detach()",
    ],
)
def test_flags_that_nothing_reads(body: str) -> None:
    assert "unread reset" in kinds(FLAGGED.format(body))


@pytest.mark.parametrize(
    "body",
    [
        "h = None if first else h.detach()\n    out, h = model(x, h)",
        "if first:\n        h = None\n    out, h = model(x, h)",
        "out, _ = model(x)",
    ],
)
def test_flags_that_are_read(body: str) -> None:
    assert "unread reset" not in kinds(FLAGGED.format(body))
