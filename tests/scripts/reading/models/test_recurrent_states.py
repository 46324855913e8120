"""States of recurrent layers and encoders."""

import pytest

from tests.scripts.reading.found import kinds

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 8, padding_idx=0)
        self.rnn = nn.{layer}(8, 8, batch_first=True, {options})
        self.up2 = nn.ConvTranspose2d(8, 8, 2)
    def forward(self, x, lengths):
        e = self.emb(x)
        {body}
        return self.out(h)
net = Net()
batch = pad_sequence(rows, batch_first=True)
"""
PACKED = "e = pack_padded_sequence(e, lengths, batch_first=True); "


def net(body: str, options: str = "bidirectional=True", layer: str = "LSTM") -> set[str]:
    return kinds(NET.format(body=body, options=options, layer=layer))


@pytest.mark.parametrize(
    ("body", "layer"),
    [("_, (h, _) = self.rnn(e); h = torch.cat([h[-1], h[-1]], dim=1)", "LSTM"),
     ("_, s = self.rnn(e); h = torch.cat((s[-2], s[-2]), 1)", "GRU"),
     ("o, (s, c) = self.rnn(e); h = torch.cat([s[-1, :, :], s[1, :, :]], dim=-1)", "LSTM")],
)  # fmt: skip
def test_states_that_are_joined_with_themselves(body: str, layer: str) -> None:
    assert "same state twice" in net(PACKED + body, layer=layer)


@pytest.mark.parametrize(
    ("places", "layers", "found"),
    [("h[0], h[1]", 2, True), ("h[1], h[0]", 3, True), ("h[0], h[1]", 1, False),
     ("h[-2], h[-1]", 2, False), ("h[2], h[3]", 2, False), ("h[0], h[-1]", 2, True)],
)  # fmt: skip
def test_states_of_lower_layers(places: str, layers: int, found: bool) -> None:
    body = f"{PACKED}_, (h, _) = self.rnn(e); h = torch.cat([{places}], 1)"
    kinds_ = net(body, f"bidirectional=True, num_layers={layers}")
    assert ("state of a lower layer" in kinds_) is found
    assert "same state twice" not in kinds_


@pytest.mark.parametrize("body", ["b = self.up2(e); h = torch.cat([b, b], dim=1)",
                                  "u = F.interpolate(e, 2); h = torch.cat((u, u), 1)",
                                  "s = self.down(e); h = torch.cat([e, e], 1)"])  # fmt: skip
def test_parts_that_are_joined_with_themselves(body: str) -> None:
    assert "same part twice" in net(body)


@pytest.mark.parametrize("body", ["freqs = self.angles(e); h = torch.cat((freqs, freqs), dim=-1)",
                                  "b = self.up2(e); h = torch.cat([b, e], dim=1)",
                                  "h = torch.cat([e, e], 0)"])  # fmt: skip
def test_parts_that_are_joined(body: str) -> None:
    assert "same part twice" not in net(body)


@pytest.mark.parametrize(
    "body",
    ["_, h = self.rnn(e); h = torch.zeros_like(h[0]); y = self.dec(h)",
     "_, s = self.rnn(e); h = self.dec(torch.zeros_like(s))",
     "o, (s, c) = self.rnn(e); h, k = s.new_zeros(s.shape), x[:, -1]"],
)  # fmt: skip
def test_encoders_that_are_ignored(body: str) -> None:
    assert "ignored encoder" in net(body)


@pytest.mark.parametrize(
    "body",
    ["_, h = self.rnn(e); h, k = h[0], x[:, -1]",
     "_, h = self.rnn(e); h = h + 0.1 * torch.randn_like(h)",
     "o, h = self.rnn(e); h = torch.zeros_like(h); y = self.dec(o)"],
)  # fmt: skip
def test_encoders_that_are_used(body: str) -> None:
    assert "ignored encoder" not in net(body)


@pytest.mark.parametrize("body", ["_, (h, _) = self.rnn(e); h = h[-1]",
                                  "o, (h, c) = self.rnn(e); h = h[-1]",
                                  "_, h = self.rnn(e); h = h[-1]"])  # fmt: skip
def test_states_after_padding(body: str) -> None:
    assert "state after padding" in net(body, options="")
    assert "state after padding" not in net(PACKED + body, options="")
    body = f"{body}; m = torch.arange(9) < lengths"
    assert "state after padding" not in net(body, options="")
