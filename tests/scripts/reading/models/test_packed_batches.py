"""Packed batches of recurrent layers."""

from tests.scripts.reading.found import kinds

PACKED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)
    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths{first})
        _, (h, _) = self.rnn(packed)
        return self.out(h[-1])
net = Net()
batch = pad_sequence(rows, batch_first=True)
"""


def test_packed_batches_have_their_own_layout() -> None:
    assert "batch as time" not in kinds(PACKED.format(first=", batch_first=True"))
