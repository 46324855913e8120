"""Parameter groups, features, vocabularies and masks of batches in sources."""

import pytest

from tests.scripts.reading.found import kinds

EACH = """
for name, p in model.named_parameters():
    wd = {value}
    groups.append({{"params": [p], "weight_decay": wd}})
"""
TWO = """
no_decay = ["bias", "LayerNorm.weight"]
decay_params = [p for n, p in model.named_parameters() if {large}]
other_params = [p for n, p in model.named_parameters() if {small}]
optimizer = torch.optim.AdamW([
    {{"params": decay_params, "weight_decay": {first}}},
    {{"params": other_params, "weight_decay": {second}}},
], lr=1e-3)
"""
PAIRS = [
    ("not any(nd in n for nd in no_decay)", "any(nd in n for nd in no_decay)"),
    ("p.ndim >= 2", "p.ndim < 2"),
    ("p.dim() > 1", "p.dim() <= 1"),
    ("'bias' not in n", "'bias' in n"),
    ("not n.endswith('bias')", "n.endswith('bias')"),
]


@pytest.mark.parametrize(
    "value",
    ["0.01 if name.endswith('bias') or 'LayerNorm' in name else 0.0",
     "0.0 if p.ndim >= 2 else 0.1", "0.01 if 'norm' in name else 0",
     "0.0 if 'bias' not in name else 1e-2"],
)  # fmt: skip
def test_decay_of_biases_alone(value: str) -> None:
    assert "inverted decay" in kinds(EACH.format(value=value))


@pytest.mark.parametrize(
    "value",
    ["0.0 if name.endswith('bias') or 'LayerNorm' in name else 0.01",
     "0.1 if p.ndim >= 2 else 0.0", "0.01 if 'head' in name else 0", "0.0 if p.ndim < 2 else 0.1",
     "0.01 if 'norm' in name else 0.02"],
)  # fmt: skip
def test_decay_of_weights(value: str) -> None:
    assert "inverted decay" not in kinds(EACH.format(value=value))


@pytest.mark.parametrize(("large", "small"), PAIRS)
def test_decay_of_two_groups(large: str, small: str) -> None:
    right = TWO.format(large=large, small=small, first=0.01, second=0.0)
    wrong = TWO.format(large=large, small=small, first=0.0, second=0.01)
    assert "inverted decay" not in kinds(right)
    assert "inverted decay" in kinds(wrong)


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


@pytest.mark.parametrize(
    "call",
    [
        "build_vocab(train_rows + val_rows + test_rows)",
        "make_vocab(train_texts + test_texts, 100)",
        "tokenizer.fit_on_texts(np.concatenate([x_train, x_test]))",
        "build_vocab_from_iterator(chain(train_iter, test_iter))",
    ],
)
def test_vocabularies_of_held_out_texts(call: str) -> None:
    assert "vocabulary of all" in kinds(f"vocab = {call}")


@pytest.mark.parametrize("call", ["build_vocab(train_rows)", "build_vocab(train_a + train_b)",
                                  "encode(train_rows + test_rows, vocab)"])  # fmt: skip
def test_vocabularies_of_training_texts(call: str) -> None:
    assert "vocabulary of all" not in kinds(f"vocab = {call}")


BERT = """
from transformers import AutoModel, DataCollatorWithPadding
model = AutoModel.from_pretrained("bert-base-uncased").to(device)
collate = DataCollatorWithPadding(tokenizer)
for batch in loader:
    loss = model({given}).loss
"""


@pytest.mark.parametrize(
    "given",
    ['input_ids=batch["input_ids"], labels=batch["labels"]', "input_ids=batch.input_ids",
     'input_ids=batch["input_ids"], token_type_ids=batch["token_type_ids"]'],
)  # fmt: skip
def test_batches_without_their_mask(given: str) -> None:
    assert "dropped mask of batch" in kinds(BERT.format(given=given))


@pytest.mark.parametrize(
    "given",
    ["**batch", 'input_ids=ids, attention_mask=batch["attention_mask"]',
     "input_ids=ids, **rest"],
)  # fmt: skip
def test_batches_with_their_mask(given: str) -> None:
    assert "dropped mask of batch" not in kinds(BERT.format(given=given))


COSINE = """
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {total})
for epoch in range(epochs):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
    scheduler.step()
"""


@pytest.mark.parametrize("total", ["T_max=epochs // 2", "epochs / 2", "T_max=epochs // 3"])
def test_cosines_that_rise_again(total: str) -> None:
    assert "rising cosine" in kinds(COSINE.format(total=total))


@pytest.mark.parametrize("total", ["T_max=epochs", "epochs, 1e-5", "T_max=steps // 2"])
def test_cosines_that_fall(total: str) -> None:
    assert "rising cosine" not in kinds(COSINE.format(total=total))
