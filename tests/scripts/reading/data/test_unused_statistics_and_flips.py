"""Readers of unused statistics, flips, missing values and others, and twins without a pattern."""

import ast
from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read

STEP = "loss = criterion(model(x), y)\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"


def trained(before: str = "", *, inside: str = "", step: str = STEP, after: str = "") -> str:
    """A script that trains over epochs of batches."""
    body = dedent(inside) + step
    loops = "for epoch in range(5):\n    for x, y in loader:\n"
    return f"{dedent(before)}\n{loops}{indent(body, ' ' * 8)}\n{indent(dedent(after), '    ')}"


def function(body: str, arguments: str = "x, y") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(a, b)\n"


MASKED = (
    "flip = torch.rand(len(imgs)) < 0.5\nimgs[flip] = imgs[flip].flip(-1)\n{}return imgs, boxes"
)
DATA = "train = datasets.{}('.', transform=Compose([{}, ToTensor()]))\n"
MIRROR = "if random.random() < 0.5:\n    image = image[:, ::-1]\n{}return image, {}"
STAMPS = "START = 1_600_000_000\nt = {}\n"
PIXELS = "pixels = x.astype(np.uint8)\nimage = {}\n"
GAPS = "means = np.nanmean(x, 0)\n"
FOUND = {
    "unused scale": (
        trained("mean, std = x.mean(0), x.std(0)\nx = x - mean"),
        trained("sd = x.std(0).clamp_min(1e-6)\nx = x - x.mean(0)"),
    ),
    "class weights in sampler": (
        trained(
            "per_row = weight[labels]\nsampler = WeightedRandomSampler(weight, 9)\nuse(sampler)"
        ),
        trained(
            "rows = torch.tensor([w[c] for c in y])\n"
            "loader = DataLoader(data, sampler=WeightedRandomSampler(weights=w, num_samples=9))"
        ),
    ),
    "unused split": (
        trained("train, test = random_split(data, [80, 20])\nmodel.eval()\nscore(test)"),
        trained("for fit, held in KFold(5).split(rows):\n    means = rows[held].mean(0)"),
        trained("hold, rest = rows[fold == 0], rows[fold != 0]\nmean = hold.mean(0)"),
    ),
    "unused offset": (
        trained("offset = 0\nfor g in graphs:\n    edges.append(g)\n    offset += len(g)"),
        function(f"node_offset = 0\nfor g in graphs:\n    node_offset += g.n\n{trained()}"),
    ),
    "unused helper": (
        "def clean(rows):\n    return rows[rows > 0]\n" + trained(),
        "def normalise(x):\n    return x / 255\ndef main():\n"
        + indent(trained(), "    ")
        + "main()\n",
    ),
    "flipped alone": (
        function(MASKED.format(""), "imgs, boxes"),
        function("return 0\n" + MASKED.format("").replace("torch.rand", "np.random.rand")),
    ),
    "flipped classes": (
        DATA.format("SVHN", "RandomHorizontalFlip()"),
        "names = ['left', 'right']\n" + DATA.format("ImageFolder", "RandomHorizontalFlip(0.5)"),
        "names = ('left', 'right')\n" + function(MIRROR.format("", "2")),
    ),
    "rounded stamps": (
        STAMPS.format("torch.tensor(stamp, dtype=torch.float32) - START"),
        STAMPS.format("stamp.astype(np.float32) - START"),
        "t = 1_600_000_000 + t\nt = t.astype('float32')\ngaps = np.diff(t)\n",
    ),
    "wrapped bytes": (
        PIXELS.format("pixels - 128"),
        PIXELS.format("pixels[3:] - 127"),
        "def load():\n    return np.zeros((9, 9), dtype=np.uint8)\nimage = load() - 128\n",
    ),
    "kept sentinel": (
        GAPS + "x[missing] = -999\n",
        GAPS + "x[np.random.rand(9) < 0.1] = -9999.0\n",
    ),
}
NOT_FOUND = {
    "unused scale": (
        trained("mean, std = x.mean(0), x.std(0)\nx = (x - mean) / std"),
        trained("_, std = torch.std_mean(x)\nprint(std)"),
    ),
    "class weights in sampler": (
        trained("rows = w[labels]\nloader = DataLoader(d, sampler=WeightedRandomSampler(rows, 9))"),
        trained("rows = w[labels]\nloader = DataLoader(d, sampler=WeightedRandomSampler(v, 9))"),
    ),
    "unused split": (
        trained("train, test = random_split(data, [80, 20])\nfit(train)\nscore(test)"),
        trained("train, test = load_data()\nscore(test)"),
        trained("for fit, held in KFold(5).split(rows):\n    means = rows[fit].mean(0)"),
    ),
    "unused offset": (
        trained("offset = 0\nfor g in graphs:\n    edges.append(g + offset)\n    offset += len(g)"),
        trained("count = 0\nfor g in graphs:\n    count += 1"),
    ),
    "unused helper": (
        "def clean(rows):\n    return rows[rows > 0]\nrows = clean(rows)\n" + trained(),
        "def clean(rows):\n    return rows\ndef fit():\n" + indent(trained(), "    "),
        "def cleanup():\n    dist.destroy_process_group()\n" + trained(),
    ),
    "flipped alone": (
        function(MASKED.format("boxes[flip] = mirrored(boxes[flip])\n"), "imgs, boxes"),
        function(MASKED.format("").replace("imgs, boxes", "imgs, labels"), "imgs, labels"),
    ),
    "flipped classes": (
        DATA.format("SVHN", "RandomCrop(28)"),
        DATA.format("CIFAR10", "RandomHorizontalFlip()") + DATA.format("MNIST", "RandomCrop(28)"),
        "names = ('left', 'right')\n" + function(MIRROR.format("    label = 1 - label\n", "label")),
        DATA.format("MNIST", "RandomHorizontalFlip(p=0)"),
    ),
    "rounded stamps": (
        STAMPS.format("torch.tensor(stamp - START, dtype=torch.float32)"),
        STAMPS.format("stamp.astype(np.float64) - START"),
        "START = 100\nt = stamp.astype(np.float32) - START\n",
    ),
    "wrapped bytes": (
        PIXELS.format("pixels.astype(np.float32) - 128"),
        PIXELS.format("pixels - 127.5"),
        "pixels = x.astype(np.uint8)\npixels = pixels / 255\nimage = pixels - 128\n",
        "labels = x.astype(np.uint8)\nlabels = labels - 1\n",
    ),
    "kept sentinel": (
        GAPS + "x[missing] = np.nan\n",
        GAPS + "x[missing] = -999\nx[x == -999] = np.nan\n",
        "x[missing] = -999\n",
    ),
}


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_a_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_ordinary_code_is_none(kind: str, text: str) -> None:
    ast.parse(text)
    assert kind not in kinds(text)


def test_each_pattern_has_twins() -> None:
    assert FOUND.keys() == NOT_FOUND.keys()
    assert all(len(texts) >= 2 for texts in (*FOUND.values(), *NOT_FOUND.values()))
