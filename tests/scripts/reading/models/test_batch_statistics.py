"""Features that are scaled by their batch."""

import pytest

from tests.scripts.reading.found import kinds

FRONT = """
class Front(nn.Module):
    def __init__(self):
        super().__init__()
        self.mel = torchaudio.transforms.MelSpectrogram(16000)
        self.mask = nn.Sequential(torchaudio.transforms.TimeMasking(15))
    def forward(self, wave):
        x = self.mel(wave)
        {body}
        return x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = Front()
    def forward(self, x):
        return self.head(self.front(x))
net = Net()
"""


@pytest.mark.parametrize(
    "body",
    ["x = (x - x.mean()) / (x.std() + 1e-5)", "x = (x - x.mean()) / x.std().clamp(min=1e-5)",
     "x = (x - torch.mean(x)) / torch.sqrt(x.var() + 1e-5)"],
)  # fmt: skip
def test_features_that_are_scaled_by_their_batch(body: str) -> None:
    assert "scaled by batch" in kinds(FRONT.format(body=body))


@pytest.mark.parametrize(
    "body",
    ["x = (x - x.mean(dim=(1, 2), keepdim=True)) / (x.std(dim=(1, 2), keepdim=True) + 1e-5)",
     "x = (x - x.mean(-1, True)) / x.std(-1, keepdim=True)", "x = (x - self.mean) / self.std"],
)  # fmt: skip
def test_features_that_are_scaled_alone(body: str) -> None:
    assert "scaled by batch" not in kinds(FRONT.format(body=body))
