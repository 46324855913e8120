"""Readers of overwritten samples, pairing, flips, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


def data_set(body: str, more: str = "") -> str:
    """A data set whose `__getitem__` has this body."""
    lines = indent(dedent(body), " " * 8)
    return f"class Data:\n    def __getitem__(self, i):\n{lines}\n{indent(dedent(more), '    ')}"


FOUND = {
    "written sample": (
        data_set("x = self.data[i]\nx += torch.randn(4)\nreturn x"),
        data_set("image = self.images[i]\nimage[2:4] = 0\nreturn image, self.labels[i]"),
        data_set("x = self.rows[i]\nx.mul_(2.0)\nreturn x"),
        data_set(
            "x = self.rows[i]\nx = self.noisy(x)\nreturn x",
            "def noisy(self, x):\n    x[0] = 0\n    return x",
        ),
    ),
    "aliased labels": (
        "labels = ids\nids[mask] = MASK\nloss = f(model(ids), labels)",
        "def hide(x):\n    target = x\n    x[:, 3] = 0\n    return x, target\nhide(a)",
        "labels = ids\nlabels[~mask] = -100\nloss = f(model(ids), labels)",
    ),
    "unpaired shuffle": (
        "rng.shuffle(x_train)\nrng.shuffle(y_train)",
        "rng.shuffle(rows)\nrng.shuffle(prices)\ndata = TensorDataset(rows, prices)",
        "x, y = x[torch.randperm(9)], y[torch.randperm(9)]",
        "p = torch.randperm(9)\nx = x[p]\ndata = TensorDataset(x, y)",
    ),
    "sorted alone": (
        (
            "def collate(batch):\n"
            "    words = sorted([w for w, _ in batch], key=len)\n"
            "    tags = [t for _, t in batch]\n    return words, tags\nf(collate)"
        ),
        (
            "def collate(batch):\n"
            "    ids = sorted((it['ids'] for it in batch), key=len, reverse=True)\n"
            "    y = torch.stack([it['y'] for it in batch])\n    return ids, y\nf(collate)"
        ),
        (
            "class C:\n    def __call__(self, items):\n"
            "        a = sorted([it[0] for it in items], key=len)\n"
            "        b = torch.tensor([it[1] for it in items])\n        return a, b"
        ),
    ),
    "flipped alone": (
        (
            "def augment(image, mask):\n    if random.random() < 0.5:\n"
            "        image = image.flip(-1)\n    return image, mask\naugment(a, b)"
        ),
        (
            "def augment(img, boxes):\n    if torch.rand(1) < 0.5:\n"
            "        img = torch.flip(img, [2])\n    return img, boxes\naugment(a, b)"
        ),
        (
            "def augment(x, seg):\n    if np.random.rand() > 0.5:\n"
            "        x = x[:, ::-1]\n    return x, seg\naugment(a, b)"
        ),
    ),
}
NOT_FOUND = {
    "written sample": (
        data_set("x = self.data[i].clone()\nx += torch.randn(4)\nreturn x"),
        data_set("x = self.data[i]; x = x.clone(); x += torch.randn(4)\nreturn x"),
        data_set("x = self.data[i]\nx = x + torch.randn(4)\nreturn x"),
        data_set("path = self.paths[i]\npath += '.png'\nreturn load(path)"),
        data_set("start = self.starts[i]\nstart += self.shift\nreturn self.data[start:]"),
        data_set("row = self.rows[i]\nrow['image'] = load(row['path'])\nreturn row"),
        data_set("x = self.dataset[i]\nx += torch.randn(4)\nreturn x"),
    ),
    "aliased labels": (
        "labels = ids.clone()\nids[mask] = MASK\nloss = f(model(ids), labels)",
        "labels = ids\nids = ids.clone()\nids[mask] = MASK\nloss = f(model(ids), labels)",
        "y = values\ny[y < 0] = 0\nloss = f(model(x), y)",
        "target = batch\nbatch['x'] = 3\nf(batch, target)",
    ),
    "unpaired shuffle": (
        "random.shuffle(train_files)\nrandom.shuffle(val_files)\nf(train_files, val_files)",
        "rng.shuffle(positives)\nrng.shuffle(negatives)\nzip(positives, negatives)",
        "rng.shuffle(cats)\nrng.shuffle(dogs)\nimages = np.concatenate((cats, dogs))",
        "p = torch.randperm(9)\nx, y = x[p], y[p]\ndata = TensorDataset(x, y)",
        "rng.shuffle(x)\nrng = seeded(0)\nrng.shuffle(y)",
    ),
    "sorted alone": (
        (
            "def collate(batch):\n    batch = sorted(batch, key=lambda s: len(s[0]))\n"
            "    words = [w for w, _ in batch]\n    tags = [t for _, t in batch]\n"
            "    return words, tags\nf(collate)"
        ),
        (
            "def collate(batch):\n    words = sorted([w for w, _ in batch], key=len)\n"
            "    tags = sorted([t for _, t in batch], key=len)\n    return words, tags\nf(collate)"
        ),
        "def longest(batch):\n    return sorted([w for w, _ in batch], key=len)[-1]\nf(longest)",
    ),
    "flipped alone": (
        (
            "def augment(image, mask):\n    if random.random() < 0.5:\n"
            "        image, mask = image.flip(-1), mask.flip(-1)\n    return image, mask\naugment()"
        ),
        (
            "def augment(image, label):\n    if random.random() < 0.5:\n"
            "        image = image.flip(-1)\n    return image, label\naugment(a, b)"
        ),
        (
            "def augment(img, boxes):\n    if torch.rand(1) < 0.5:\n        img = img.flip(-1)\n"
            "        boxes = mirrored(boxes)\n    return img, boxes\naugment(a, b)"
        ),
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_a_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_ordinary_code_is_none(kind: str, text: str) -> None:
    assert kind not in kinds(text)


def test_each_pattern_has_twins() -> None:
    assert FOUND.keys() == NOT_FOUND.keys()
    assert all(len(texts) >= 3 for texts in (*FOUND.values(), *NOT_FOUND.values()))
