"""Masks in every mode, and held-out sets that are augmented."""

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
    "body", ["x = self.mask(x)", "x = self.mask(x.log())", "return self.mask(x)"]
)
def test_masks_in_every_mode(body: str) -> None:
    assert "masked in every mode" in kinds(FRONT.format(body=body))


@pytest.mark.parametrize(
    "body", ["x = self.mask(x) if self.training else x", "x = x.log()",
             "x = self.mask(x) if self.masks else x"]
)  # fmt: skip
def test_masks_in_training(body: str) -> None:
    assert "masked in every mode" not in kinds(FRONT.format(body=body))


CLIPS = """
class Clips(Dataset):
    def __init__(self, subset, augment=False):
        self.augment = augment
    def __getitem__(self, i):
        return self.rows[i]
train = Clips("training", augment=True)
{held_out}
"""


@pytest.mark.parametrize("held_out", ['val = Clips("validation", augment=True)',
                                      'loader = DataLoader(Clips("test", augment=True), 8)',
                                      "val_set = Clips(rows, augment=True)"])  # fmt: skip
def test_held_out_sets_that_are_augmented(held_out: str) -> None:
    assert "augmented held-out" in kinds(CLIPS.format(held_out=held_out))


@pytest.mark.parametrize(
    "held_out",
    [
        'val = Clips("validation")',
        "val = Clips(rows, augment=False)",
        'more = Clips("training", augment=True)',
    ],
)
def test_held_out_sets_that_are_plain(held_out: str) -> None:
    assert "augmented held-out" not in kinds(CLIPS.format(held_out=held_out))
