"""Layouts of tensors in sources: heads, states, packed sequences, channels and classes."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {each.kind for each in read(dedent(text))}


def attention(body: str) -> str:
    head = """
    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads, self.dim = heads, dim
            self.head_dim = dim // heads
            self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
            self.qkv = nn.Linear(dim, 3 * dim)
            self.drop = nn.Dropout(0.1)
        def forward(self, x):
    """
    return dedent(head) + indent(dedent(body).strip(), "        ") + "\n"


SPLIT = "q = self.q(x).view(B, T, self.heads, self.head_dim).transpose(1, 2)\n"
SPLIT = SPLIT + SPLIT.replace("q", "k") + SPLIT.replace("q", "v")
WEIGHTS = SPLIT + "w = (q @ k.transpose(-2, -1) * 0.1).softmax(-1)\n"


@pytest.mark.parametrize(
    "body",
    [
        "B, T, C = x.shape\n" + WEIGHTS + "return (w @ v).reshape(B, T, C)",
        "B, T, _ = x.size()\n" + WEIGHTS + "y = self.drop(w) @ v\n"
        "y = y.contiguous().view(B, T, self.heads * self.head_dim)\nreturn y",
        "B = x.size(0)\nT = x.size(1)\n"
        + SPLIT
        + "y = F.scaled_dot_product_attention(q, k, v)\nreturn y.reshape(B, T, -1)",
        "B = x.size(0)\n"
        + WEIGHTS.replace("T", "-1")
        + "y = torch.matmul(w, v)\nreturn y.view(B, -1, self.heads * self.head_dim)",
        "B, T, C = x.shape\n"
        "qkv = self.qkv(x).reshape(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)\n"
        "q, k, v = qkv.unbind(0)\nw = (q @ k.mT).softmax(-1)\n"
        "return (w @ v).reshape(B, T, C)".replace("k.mT", "k.transpose(-1, -2)"),
        "B, T, C = x.shape\n" + WEIGHTS + "return torch.matmul(w, v).flatten(2)",
    ],
)
def test_heads_that_are_merged_with_positions(body: str) -> None:
    assert kinds(attention(body)) == {"merged heads"}


@pytest.mark.parametrize(
    "body",
    [
        "B, T, C = x.shape\n" + WEIGHTS + "return (w @ v).transpose(1, 2).reshape(B, T, C)",
        "B, T, C = x.shape\n"
        + WEIGHTS
        + "y = (w @ v).permute(0, 2, 1, 3).contiguous()\nreturn y.view(B, T, C)",
        "B, T, C = x.shape\n" + WEIGHTS + "return (w @ v).transpose(1, 2).flatten(2)",
        "B, T, C = x.shape\n" + WEIGHTS + "return (w @ v).reshape(B * self.heads, T, -1)",
    ],
)
def test_heads_that_are_moved_first_are_merged_right(body: str) -> None:
    assert not kinds(attention(body))


def recurrent(body: str, layer: str = "nn.GRU(8, 16, num_layers=2, batch_first=True)") -> str:
    head = f"""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = {layer}
            self.out = nn.Linear(32, 4)
        def forward(self, x, lengths):
    """
    return dedent(head) + indent(dedent(body).strip(), "        ") + "\n"


BOTH = "nn.LSTM(8, 16, bidirectional=True, batch_first=True)"


@pytest.mark.parametrize(
    ("body", "layer"),
    [
        ("_, h = self.rnn(x)\nreturn self.out(h.view(x.size(0), -1))", BOTH.replace("LSTM", "GRU")),
        ("out, (h, c) = self.rnn(x)\ny = self.out(h.reshape(-1, 2 * 16))\nreturn y", BOTH),
        ("_, (hn, _) = self.rnn(x)\nreturn self.out(hn.reshape(len(x), -1))", BOTH),
        ("_, hn = self.rnn(x)\nreturn self.out(hn.view(x.shape[0], 32))", "nn.GRU(8, 16, 2)"),
    ],
)
def test_final_states_that_are_cut_by_a_view(body: str, layer: str) -> None:
    assert "state by view" in kinds(recurrent(body, layer))


@pytest.mark.parametrize(
    ("body", "layer"),
    [
        ("_, h = self.rnn(x)\nreturn self.out(h.transpose(0, 1).reshape(x.size(0), -1))", BOTH),
        ("_, h = self.rnn(x)\nreturn self.out(h.view(x.size(0), -1))", "nn.GRU(8, 16)"),
        ("_, h = self.rnn(x)\nh = torch.cat([h[-2], h[-1]], 1)\nreturn self.out(h)", BOTH),
        ("out, _ = self.rnn(x)\nreturn self.out(out.reshape(x.size(0), -1))", BOTH),
        ("_, h = self.rnn(x)\nh = h.view(2, 2, x.size(0), 16)\nreturn h[-1, 0]", BOTH),
    ],
)
def test_final_states_whose_batch_is_moved_or_alone(body: str, layer: str) -> None:
    assert "state by view" not in kinds(recurrent(body, layer))


PACK = "p = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)\n"


@pytest.mark.parametrize(
    "body",
    [
        PACK + "h, _ = pad_packed_sequence(self.rnn(p)[0])\nreturn self.out(h)",
        PACK + "y, _ = self.rnn(p)\ny, n = nn.utils.rnn.pad_packed_sequence(y)\n"
        "return self.out(y).view(x.size(0), x.size(1), -1)",
        PACK.replace("batch_first=True", "True")
        + "y, _ = self.rnn(p)\nreturn self.out(rnn_utils.pad_packed_sequence(y)[0])",
    ],
)
def test_sequences_that_are_unpacked_in_another_layout(body: str) -> None:
    assert "time first" in kinds(recurrent(body))


@pytest.mark.parametrize(
    "body",
    [
        PACK + "h, _ = pad_packed_sequence(self.rnn(p)[0], batch_first=True)\nreturn self.out(h)",
        PACK + "h, _ = pad_packed_sequence(self.rnn(p)[0])\nreturn self.out(h.transpose(0, 1))",
        PACK + "h, _ = pad_packed_sequence(self.rnn(p)[0])\nreturn self.out(h.sum(0))",
        PACK + "h, n = pad_packed_sequence(self.rnn(p)[0], True)\nreturn self.out(h)",
    ],
)
def test_sequences_that_are_unpacked_in_the_same_layout(body: str) -> None:
    assert "time first" not in kinds(recurrent(body))


FRAMES = """
def collate(rows):
    return pad_sequence(rows, batch_first=True)
class Net(nn.Module):
    def __init__(self, n_mels):
        super().__init__()
        self.conv = {}
    def forward(self, x):
        {}
"""
CONV = "nn.Sequential(nn.Conv1d(n_mels, 32, 3), nn.ReLU())"


@pytest.mark.parametrize(
    ("conv", "body"),
    [
        (CONV, "return self.conv(x.reshape(x.size(0), n_mels, -1))"),
        ("nn.Conv1d(80, 32, 5)", "return self.conv(x.view(len(x), 80, x.size(1)))"),
        ("nn.Conv1d(in_channels=N_MELS, out_channels=8, kernel_size=3)",
         "h = x.view(x.shape[0], N_MELS, -1)\n        return self.conv(h)"),
    ],
)  # fmt: skip
def test_frames_that_become_channels_by_reshape(conv: str, body: str) -> None:
    assert kinds(FRAMES.format(conv, body)) == {"reshaped axes"}


@pytest.mark.parametrize(
    ("conv", "body"),
    [
        (CONV, "return self.conv(x.transpose(1, 2))"),
        ("nn.Conv1d(1, 32, 5)", "return self.conv(x.view(x.size(0), 1, -1))"),
        (CONV, "x = x.transpose(1, 2)\n        return self.conv(x)"),
    ],
)
def test_frames_that_become_channels_by_a_turn(conv: str, body: str) -> None:
    assert not kinds(FRAMES.format(conv, body))


@pytest.mark.parametrize(
    "text",
    [
        "x = img.reshape(3, *img.shape[:2])",
        "x = np.array(Image.open(p).convert('RGB')).reshape(3, 32, 32)",
        "img = cv2.imread(p)\nx = torch.from_numpy(img).reshape(3, size, size)",
    ],
)
def test_pictures_whose_channels_are_moved_by_reshape(text: str) -> None:
    assert kinds(text) == {"reshaped axes"}


@pytest.mark.parametrize(
    "text",
    [
        "x = img.transpose(2, 0, 1).reshape(3, *img.shape[:2])",
        "x = np.fromfile(p, np.uint8).reshape(3, 32, 32)",
        "img = cv2.imread(p).transpose(2, 0, 1)\nx = img.reshape(3, size, size)",
        "x = row[1:].reshape(1, 28, 28)",
    ],
)
def test_pictures_that_are_stored_with_channels_first(text: str) -> None:
    assert not kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "loss = F.cross_entropy(z.transpose(1, 2).reshape(-1, z.size(-1)), y.flatten())",
        (
            "flat = z.permute(0, 2, 1).contiguous().view(-1, z.shape[-1])\n"
            "loss = criterion(flat, y.view(-1))"
        ),
        "loss = F.nll_loss(torch.transpose(z, 1, 2).reshape(-1, z.shape[2]), y.reshape(-1))",
    ],
)
def test_classes_that_are_turned_away_and_flattened(text: str) -> None:
    assert kinds(text) == {"reshaped classes"}


@pytest.mark.parametrize(
    "text",
    [
        "loss = F.cross_entropy(z.transpose(1, 2).reshape(-1, z.size(1)), y.flatten())",
        "loss = F.cross_entropy(z.reshape(-1, z.size(-1)), y.flatten())",
        "loss = F.cross_entropy(z.transpose(1, 2), y)",
    ],
)
def test_classes_that_are_the_last_axis(text: str) -> None:
    assert not kinds(text)


FLAT = """
rnn = nn.LSTM(8, 16, batch_first=True)
out = head(rnn(x)[0])
loss = criterion({}, {})
"""


@pytest.mark.parametrize(
    ("scores", "targets"),
    [
        ("out.reshape(-1, V)", "y.t().reshape(-1)"),
        ("out.flatten(0, 1)", "y.transpose(0, 1).flatten()"),
        ("out.view(-1, V)", "y.T.contiguous().view(-1)"),
    ],
)
def test_targets_that_are_turned_alone(scores: str, targets: str) -> None:
    assert kinds(FLAT.format(scores, targets)) == {"turned targets"}


@pytest.mark.parametrize(
    ("scores", "targets"),
    [
        ("out.reshape(-1, V)", "y.reshape(-1)"),
        ("out.transpose(0, 1).reshape(-1, V)", "y.t().reshape(-1)"),
        ("out.mT", "y.t()"),
    ],
)
def test_targets_that_lie_like_their_scores(scores: str, targets: str) -> None:
    assert not kinds(FLAT.format(scores, targets))


@pytest.mark.parametrize(
    "text",
    [
        "loss = criterion(z.view(z.size(0), V, -1), y)\nguess = z.argmax(-1)",
        "s = z.reshape(len(z), V, -1)\nloss = F.cross_entropy(s, y)\nhit = z.argmax(dim=-1) == y",
        "loss = F.cross_entropy(z.view(B, V, -1), y)\ntoken = z[:, -1:].argmax(2)",
    ],
)
def test_classes_that_a_view_cuts(text: str) -> None:
    assert kinds(text) == {"reshaped classes"}


@pytest.mark.parametrize(
    "text",
    [
        "loss = criterion(z.view(z.size(0), V, -1), y)\nguess = z.argmax(1)",
        "loss = criterion(z.transpose(1, 2), y)\nguess = z.argmax(-1)",
        "loss = criterion(z.view(-1, V), y)\nguess = z.argmax(-1)",
    ],
)
def test_classes_that_a_view_keeps(text: str) -> None:
    assert not kinds(text)
