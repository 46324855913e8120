"""Connectionist temporal classification in sources: loss, blanks, lengths, decoding."""

import pytest

from tests.scripts.reading.found import kinds

MODEL = """
class Net(nn.Module):
    def forward(self, x):
        return {}
model = Net()
ctc = nn.CTCLoss(blank=0)
loss = ctc({}, y, x_len, y_len)
loss.backward()
"""


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("self.out(x).softmax(-1)", "model(x).transpose(0, 1)"),
        ("self.out(x)", "model(x).transpose(0, 1)"),
        ("self.out(x)", "F.softmax(model(x), dim=-1).permute(1, 0, 2)"),
    ],
)
def test_ctc_of_what_is_no_logarithm(made: str, given: str) -> None:
    assert kinds(MODEL.format(made, given)) == {"CTC without logarithm"}


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("self.out(x).log_softmax(-1)", "model(x).transpose(0, 1)"),
        ("self.out(x)", "F.log_softmax(model(x), -1).transpose(0, 1)"),
        ("self.out(x).softmax(-1)", "model(x).clamp(min=1e-9).log().transpose(0, 1)"),
    ],
)
def test_ctc_of_logarithms(made: str, given: str) -> None:
    assert not kinds(MODEL.format(made, given))


DECODE = """
def decode(ids):
    out, prev = [], -1
    for s in ids:
        {}
    return out
"""


@pytest.mark.parametrize(
    "body",
    [
        """if s != BLANK and s != prev:
            out.append(s)
            prev = s""",
        """if s == blank:
            continue
        if s != prev:
            out.append(s)
        prev = s""",
        """if s != self.blank:
            if s != prev:
                out.append(s)
            prev = s""",
        """if s == BLANK_ID:
            continue
        if prev == s:
            continue
        out.append(s)
        prev = s""",
    ],
)
def test_blanks_that_part_no_repeats(body: str) -> None:
    assert kinds(DECODE.format(body)) == {"late merge"}


@pytest.mark.parametrize(
    "body",
    [
        """if s != BLANK and s != prev:
            out.append(s)
        prev = s""",
        """if s != prev:
            if s != BLANK:
                out.append(s)
            prev = s""",
        """if s == BLANK:
            prev = s
            continue
        if s != prev:
            out.append(s)
        prev = s""",
        """if s != PAD and s != prev:
            out.append(s)
            prev = s""",
    ],
)
def test_blanks_that_part_repeats(body: str) -> None:
    assert not kinds(DECODE.format(body))


LENGTHS = """
y_len = torch.tensor([len(y) for y in ys])
labels = {}
ctc = nn.CTCLoss()
loss = ctc(logits.log_softmax(-1), labels, {}, {})
"""


@pytest.mark.parametrize(
    ("labels", "inputs", "targets"),
    [
        ("torch.cat(ys)", "torch.full_like(x_len, h.size(1))", "y_len"),
        ("torch.cat(ys)", "torch.full_like(input_lengths, logits.shape[0])", "y_len"),
        ("pad_sequence(ys, batch_first=True)", "x_len", "torch.full((B,), labels.size(1))"),
    ],
)
def test_padded_lengths(labels: str, inputs: str, targets: str) -> None:
    assert kinds(LENGTHS.format(labels, inputs, targets)) == {"padded lengths"}


@pytest.mark.parametrize(
    ("labels", "inputs", "targets"),
    [
        ("torch.cat(ys)", "x_len // 2", "y_len"),
        ("torch.cat(ys)", "torch.full((B,), logits.size(0))", "y_len"),
        ("torch.randint(1, 9, (B, 5))", "x_len", "torch.full((B,), labels.size(1))"),
    ],
)
def test_lengths_that_are_real(labels: str, inputs: str, targets: str) -> None:
    assert not kinds(LENGTHS.format(labels, inputs, targets))


SYMBOLS = """
SYMBOLS = {}
{}
def encode(text):
    return torch.tensor({})
loss = nn.CTCLoss()(model(x).log_softmax(-1), encode("ab"), n, m)
"""
TABLE = "stoi = {c: i for i, c in enumerate(SYMBOLS)}"


@pytest.mark.parametrize(
    ("symbols", "table", "encoded"),
    [
        ("'0123456789'", "", "[SYMBOLS.index(c) for c in text]"),
        ("'abc'", TABLE, "[stoi[c] for c in text]"),
        ("sorted(set(corpus))", TABLE, "[stoi[c] for c in text]"),
        ("['a', 'b']", TABLE, "[stoi.get(c) for c in text]"),
    ],
)
def test_symbols_that_are_the_blank(symbols: str, table: str, encoded: str) -> None:
    assert kinds(SYMBOLS.format(symbols, table, encoded)) == {"blank is a class"}


@pytest.mark.parametrize(
    ("symbols", "table", "encoded"),
    [
        ("'0123456789'", "", "[SYMBOLS.index(c) + 1 for c in text]"),
        ("'-abc'", TABLE, "[stoi[c] for c in text]"),
        ("['<blank>', 'a']", TABLE, "[stoi[c] for c in text]"),
        ("'abc'", "stoi = {c: i for i, c in enumerate(SYMBOLS, 1)}", "[stoi[c] for c in text]"),
        ("'abc'", TABLE, "[stoi[c] + 1 for c in text]"),
    ],
)
def test_symbols_beside_the_blank(symbols: str, table: str, encoded: str) -> None:
    assert not kinds(SYMBOLS.format(symbols, table, encoded))


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        ("self.out(x)", "nn.NLLLoss()(model(x), y)"),
        ("self.out(x).softmax(-1)", "F.nll_loss(model(x), y)"),
        ("self.out(x)", "F.nll_loss(F.softmax(model(x), 1), y)"),
    ],
)
def test_likelihoods_without_logarithm(made: str, loss: str) -> None:
    text = MODEL.format(made, "x").partition("ctc =")[0] + f"loss = {loss}\nloss.backward()"
    assert kinds(text) == {"likelihood without logarithm"}


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        ("self.out(x).log_softmax(-1)", "nn.NLLLoss()(model(x), y)"),
        ("self.out(x).softmax(-1)", "F.nll_loss(torch.log(model(x)), y)"),
        ("self.out(x)", "nn.CrossEntropyLoss()(model(x), y)"),
    ],
)
def test_likelihoods_of_logarithms(made: str, loss: str) -> None:
    text = MODEL.format(made, "x").partition("ctc =")[0] + f"loss = {loss}\nloss.backward()"
    assert not kinds(text)
