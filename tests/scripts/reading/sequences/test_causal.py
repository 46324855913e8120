"""Next tokens in sources: masks that are missing or unread, and shifts."""

import pytest

from tests.scripts.reading.found import kinds

DECODER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = {}
    def forward(self, tgt, memory):
        return {}
net = Net()
loss = criterion(net(tgt[:, :-1], memory), tgt[:, 1:])
"""
STACK = "nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 3)"


@pytest.mark.parametrize(
    ("layer", "call"),
    [
        (STACK, "self.decoder(tgt, memory)"),
        (STACK, "self.decoder(tgt, memory, memory_key_padding_mask=pad)"),
        ("nn.Transformer(8, 2, batch_first=True)", "self.decoder(memory, tgt)"),
        ("nn.TransformerDecoderLayer(8, 2)", "self.decoder(tgt, memory)"),
    ],
)
def test_decoders_that_see_the_future(layer: str, call: str) -> None:
    assert "no causal mask" in kinds(DECODER.format(layer, call))


@pytest.mark.parametrize(
    ("layer", "call"),
    [
        (STACK, "self.decoder(tgt, memory, tgt_mask=mask)"),
        (STACK, "self.decoder(tgt, memory, mask)"),
        (STACK, "self.decoder(tgt, memory, tgt_is_causal=True)"),
        ("nn.GRU(8, 8)", "self.decoder(tgt, memory)"),
    ],
)
def test_decoders_with_masks(layer: str, call: str) -> None:
    assert "no causal mask" not in kinds(DECODER.format(layer, call))


def test_decoders_of_queries_need_no_mask() -> None:
    text = DECODER.format(STACK, "self.decoder(tgt, memory)")
    assert not kinds(text.replace("tgt[:, :-1]", "queries").replace("tgt[:, 1:]", "boxes"))


LANGUAGE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 3)
    def forward(self, x):
        {}
        return self.head(y)
net = Net()
x = torch.stack([data[i:i + block] for i in starts])
y = torch.stack([data[i + 1:i + block + 1] for i in starts])
loss = F.cross_entropy(net(x).view(-1, V), y.view(-1))
for _ in range(100):
    new = torch.multinomial(net(ids)[:, -1].softmax(-1), 1)
    ids = torch.cat([ids, new], dim=1)
"""


@pytest.mark.parametrize(
    "body",
    [
        "y = (q @ k.transpose(-2, -1) / 8).softmax(-1) @ v",
        "y = F.scaled_dot_product_attention(q, k, v)",
        "y = self.encoder(x)",
        "s = torch.matmul(q, k.transpose(1, 2))\n        y = F.softmax(s, dim=-1) @ v",
    ],
)
def test_language_models_that_see_the_future(body: str) -> None:
    assert "no causal mask" in kinds(LANGUAGE.format(body))


@pytest.mark.parametrize(
    "body",
    [
        "y = (s.masked_fill(torch.triu(ones, 1), -1e9)).softmax(-1) @ v",
        "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        "y = self.encoder(x, mask=self.mask)",
        "y = self.conv(F.pad(x, (2, 0)))",
    ],
)
def test_language_models_that_see_the_past(body: str) -> None:
    assert "no causal mask" not in kinds(LANGUAGE.format(body))


MASKED = """
class Net(nn.Module):
    def forward(self, ids{}):
        {}
        w = {}.softmax(-1)
        return w @ v
net = Net()
y = net(ids, {})
"""


@pytest.mark.parametrize(
    ("more", "line", "scores", "given"),
    [
        ("", "mask = ids != PAD", "s", "True"),
        ("", "pad_mask = (ids == 0).unsqueeze(1)", "s", "True"),
        (", mask=None", "s = q @ k.mT", "s", "mask"),
        (", attention_mask", "s = q @ k.mT", "s", "attention_mask=m"),
    ],
)
def test_masks_that_nothing_reads(more: str, line: str, scores: str, given: str) -> None:
    assert "unread mask" in kinds(MASKED.format(more, line, scores, given))


@pytest.mark.parametrize(
    ("more", "line", "scores", "given"),
    [
        ("", "mask = ids != PAD", "s.masked_fill(~mask, -1e9)", "True"),
        (", mask=None", "s = q @ k.mT", "s", "None"),
        (", lengths", "mask = arange < lengths", "(s + mask)", "lengths"),
    ],
)
def test_masks_that_are_read(more: str, line: str, scores: str, given: str) -> None:
    assert "unread mask" not in kinds(MASKED.format(more, line, scores, given))


@pytest.mark.parametrize(
    "text",
    [
        "m = AutoModelForCausalLM.from_pretrained(n)\nm(ids[:, :-1], labels=ids[:, 1:])",
        "m = GPT2LMHeadModel(c)\nx, y = ids[:, :-1], ids[:, 1:]\nm(input_ids=x, labels=y)",
        (
            "x = d[i:i + n]\ny = d[i + 1:i + n + 1]\nz = net(x)\n"
            "loss = F.cross_entropy(z[:, :-1].reshape(-1, V), y[:, 1:].reshape(-1))"
        ),
    ],
)
def test_targets_that_are_shifted_twice(text: str) -> None:
    assert "shifted twice" in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "m = AutoModelForCausalLM.from_pretrained(n)\nm(ids, labels=ids)",
        "m = T5ForConditionalGeneration(c)\nm(ids[:, :-1], labels=ids[:, 1:])",
        (
            "x = d[i:i + n]\nz = net(x)\n"
            "loss = F.cross_entropy(z[:, :-1].reshape(-1, V), x[:, 1:].reshape(-1))"
        ),
    ],
)
def test_targets_that_are_shifted_once(text: str) -> None:
    assert "shifted twice" not in kinds(text)


PRETRAINED = """
from transformers import AutoModel, AutoTokenizer
tok = AutoTokenizer.from_pretrained(name)
model = AutoModel.from_pretrained(name)
{}
"""


@pytest.mark.parametrize(
    "text",
    [
        "enc = tok(texts, padding=True, return_tensors='pt')\nh = model(enc['input_ids'])",
        "ids = tok(texts, padding='max_length', truncation=True).input_ids\nh = model(ids)",
        "b = tok(texts, padding=True)\nh = model(input_ids=b.input_ids.to(device))",
    ],
)
def test_encodings_without_their_mask(text: str) -> None:
    assert kinds(PRETRAINED.format(text)) == {"dropped mask"}


@pytest.mark.parametrize(
    "text",
    [
        "enc = tok(texts, padding=True, return_tensors='pt')\nh = model(**enc)",
        "ids = tok(text, return_tensors='pt').input_ids\nh = model(ids)",
        "b = tok(texts, padding=True)\nh = model(b.input_ids, b.attention_mask)",
    ],
)
def test_encodings_with_their_mask(text: str) -> None:
    assert not kinds(PRETRAINED.format(text))


PADDED = """
def collate(rows):
    x = pad_sequence([r[0] for r in rows], batch_first=True{})
    y = pad_sequence([r[1] for r in rows], batch_first=True{})
    return x, y
"""
LEFT = ', padding_side="left"'


@pytest.mark.parametrize(
    ("x", "y"), [(LEFT, ""), ("", LEFT), (LEFT, LEFT.replace("left", "right"))]
)
def test_sequences_that_are_padded_on_other_sides(x: str, y: str) -> None:
    assert kinds(PADDED.format(x, y)) == {"padding sides"}


@pytest.mark.parametrize(("x", "y"), [(LEFT, LEFT), ("", ""), ("", LEFT.replace("left", "right"))])
def test_sequences_that_are_padded_on_one_side(x: str, y: str) -> None:
    assert not kinds(PADDED.format(x, y))
