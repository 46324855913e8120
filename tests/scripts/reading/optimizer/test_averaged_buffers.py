"""Buffers of averaged weights."""

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


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
