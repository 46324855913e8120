"""Readers of metrics that are counted wrongly and of splits that are confused, and their twins."""

from textwrap import dedent

import pytest

from holter.scripts.reading import read

LOADER = "test_loader = DataLoader(test_set, batch_size=64)\n"
MEAN = "criterion = nn.CrossEntropyLoss()\n" + LOADER
SKLEARN = "from sklearn.metrics import *\nfrom sklearn.metrics import roc_auc_score, f1_score\n"
BINARY = "criterion = nn.BCEWithLogitsLoss()\n"
PROBABLE = (
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.head = nn.Linear(4, 1)\n"
    "    def forward(self, x):\n"
    "        return torch.sigmoid(self.head(x)).squeeze(-1)\n"
    "model = Net().to(device)\n"
)
BUILD = """
def build(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 4, generator=g)
"""
CACHED = """
class Rows(Dataset):
    cache = {}
    def __init__(self, path):
        self.paths = sorted(path.glob("*"))
    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = load(self.paths[i])
        return self.cache[i]
"""
TWO_SETS = "train_set, val_set = Rows(train_path), Rows(val_path)\n"


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


def summed(body: str, after: str, before: str = LOADER, over: str = "test_loader") -> str:
    """A loop over batches that adds something up, and what is made of the sum."""
    return (
        f"{before}total = right = 0\nfor x, y in {over}:\n    p = model(x).argmax(1)\n"
        f"    {body}\n{after}\n"
    )


FOUND = {
    "overwritten sum": (
        summed("right = (p == y).sum().item(); total += len(y)", "print(right / total)"),
        summed("total += y.size(0)\n    right = p.eq(y).sum()", "acc = 100 * right / total"),
    ),
    "samples by batches": (
        summed("right += (p == y).sum().item()", "acc = right / len(test_loader)"),
        summed("right += p.eq(y).sum()", "n = len(test_loader)\nprint(100.0 * right.item() / n)"),
        summed("right += float((p == y).sum())", "right /= len(test_loader)", LOADER),
        summed("total += loss.item() * x.size(0)", "total /= len(test_loader)", LOADER),
    ),
    "batches by samples": (
        summed("total += criterion(q, y).item()", "print(total / len(test_loader.dataset))", MEAN),
        summed("total += float(criterion(q, y))", "total /= len(test_set)", MEAN),
        summed(
            "loss = F.mse_loss(q, y)\n    total += loss.item()\n    right += len(y)",
            "print(total / right)",
        ),
    ),
    "exponent of sum": (
        summed("total += criterion(q, y).item()", "ppl = math.exp(total)", MEAN),
        summed("total += F.cross_entropy(q, y)", "print(torch.exp(total))"),
    ),
    "exchanged arguments": (
        SKLEARN + "print(roc_auc_score(scores, labels))",
        "from sklearn import metrics\nmetrics.recall_score(np.array(y_pred), np.array(y_true))",
        "import sklearn.metrics as m\nm.r2_score(out.pred.cpu(), y.cpu())",
    ),
    "hard ranking": (
        SKLEARN + "roc_auc_score(y, logits.argmax(1))",
        SKLEARN + "found = (probs > 0.5).astype(int)\nroc_auc_score(y, found)",
        SKLEARN + "p = []\nfor x in loader:\n    p.extend(torch.argmax(model(x), 1).tolist())\n"
        "print(roc_auc_score(labels, np.array(p)))",
    ),
    "one-sided union": (
        "inter += (p & t).sum()\nunion += t.sum()",
        "intersection[c] = ((pred == c) & (mask == c)).sum()\nunion[c] = (mask == c).sum()",
    ),
    "threshold of zero": (
        "p = torch.sigmoid(model(x)) > 0",
        "p = model(x).sigmoid().squeeze(1)\nhit = (p >= 0).float()",
        "net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()).to(device)\nhit = net(x) > 0",
        PROBABLE + "def accuracy(out, y):\n    return ((out > 0) == y).float().mean()\n"
        "accuracy(model(x), y)",
    ),
    "softmax threshold": (
        BINARY + "loss = criterion(z, y)\nhits = torch.softmax(z, 1) > 0.5",
        BINARY + "p = F.softmax(model(x), dim=-1).cpu()\nhits = p >= 0.4",
    ),
    "logits threshold": (
        BINARY + "z = model(x)\nloss = criterion(z, y)\nhit = z > 0.5",
        BINARY + "loss = criterion(model(x), y)\ndef test(x):\n    z = model(x).squeeze(1)\n"
        "    return z > 0.5\ntest(x)",
        ("loss = F.binary_cross_entropy_with_logits(a * b, y)\nz = net(x)\n"
        "loss = F.binary_cross_entropy_with_logits(z, y)\nz_hit = (net(v) > 0.5).float()"),
    ),
    "sigmoid twice": (
        PROBABLE + "hit = torch.sigmoid(model(x)) > 0.5",
        "net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())\np = net(x)\nhit = p.sigmoid() > 0.6",
    ),
    "evaluated on training": (
        "val_loss = evaluate(model, train_loader)",
        "val_loss, val_acc = evaluate(model, criterion, train_loader, device)",
        "history = {'train_acc': accuracy(m, train_set), 'val_acc': accuracy(m, train_set)}",
        "print('validation loss:', test(model, train_loader))",
        "for e in range(9):\n    s = test(net, train_loader)\n    print(f'{e}: val loss {s}')",
    ),
    "held-out as training": (
        ("train_set = Images(a, augment=True)\nval_set = Images(b, augment=True)\n"
        "val_loader = DataLoader(val_set, batch_size=8)"),
        ("training = MNIST(root, train=True)\ntest_data = MNIST(root, train=True)\n"
        "loader = DataLoader(test_data)\nprint(len(test_data))"),
    ),
    "split twice": (
        "train, _ = random_split(data, [8, 2])\n_, val = random_split(data, [8, 2])",
        ("train, _ = random_split(Images(root, transform=a), [8, 2])\n"
        "_, val = random_split(Images(root, transform=b), [8, 2])"),
        "a, _ = train_test_split(rows, shuffle=True)\n_, b = train_test_split(rows)",
    ),
    "same seed": (
        BUILD + "train_x = build(900, seed=1)\nval_x = build(150, seed=1)",
        BUILD + "train_x, val_x = build(900), build(n_val)",
        ("class Toy(Dataset):\n    def __init__(self, n, seed):\n        torch.manual_seed(seed)\n"
        "        self.x = torch.randn(n, 4)\ntrain_set = Toy(900, 0)\ntest_set = Toy(150, 0)"),
    ),
    "shared cache": (
        CACHED + TWO_SETS,
        "STORE = {}\n" + CACHED.replace("self.cache", "STORE").replace("    cache = {}\n", "")
        + "train_set = Rows(path=a)\nval_set = Rows(path=b)",
    ),
}  # fmt: skip

NOT_FOUND = (
    # the sum is added up, used in each turn, or is of the last batch on purpose
    summed("right += (p == y).sum().item(); total += len(y)", "print(right / total)"),
    summed("right = (p == y).sum(); log(right); total += len(y)", "print(right / total)"),
    # batches of one sample, and a count that is changed in between
    summed(
        "right += (p == y).sum()",
        "right / len(test_loader)",
        "test_loader = DataLoader(test_set)\n",
    ),
    summed("right += (p == y).sum()", "right = right / 64\nprint(right / len(test_loader))"),
    summed("right += (p == y).float().mean()", "print(right / len(test_loader))"),
    summed("right += (p == y).sum()", "print(right / len(test_loader.dataset))"),
    # a sum over samples, a loop over samples, and a mean of batches
    summed(
        "total += criterion(q, y).item()",
        "print(total / len(test_loader.dataset))",
        LOADER + "criterion = nn.CrossEntropyLoss(reduction='sum')\n",
    ),
    summed("total += criterion(q, y).item()", "print(total / len(test_set))", MEAN, "test_set"),
    summed(
        "loss = criterion(q, y)\n    loss *= len(y)\n    total += loss.item()\n    right += len(y)",
        "print(total / right)",
        MEAN,
    ),
    summed("total += criterion(q, y).item()", "ppl = math.exp(total / len(test_loader))", MEAN),
    summed("total += criterion(q, y).item()", "total /= 9\nppl = math.exp(total)", MEAN),
    # the right order, the order of another library, and a metric that is symmetric
    SKLEARN + "roc_auc_score(labels, scores)",
    "from torchmetrics.functional import confusion_matrix\nconfusion_matrix(preds, target)",
    SKLEARN + "f1_score(y_pred, y_true)",
    SKLEARN + "roc_auc_score(y, probs.round(3))",
    SKLEARN + "roc_auc_score(y, np.round(probs, 3))",
    SKLEARN + "roc_auc_score(labels, model.predict(x).tolist())",
    "inter += (p & t).sum()\nunion += (p | t).sum()",
    "inter += (p * t).sum()\nunion += p.sum() + t.sum()",
    # probabilities with a threshold of their scale, and a check of values
    "p = torch.sigmoid(model(x)) > 0.5",
    "p = torch.sigmoid(model(x))\nassert (p > 0).all()",
    "p = torch.relu(model(x)) > 0",
    "loss = F.cross_entropy(z, y)\nhits = torch.softmax(z, 1) > 0.5",
    BINARY + "z = model(x)\nloss = criterion(z, y)\nhit = z > 0",
    BINARY + "z = model(x)\nloss = criterion(z, y)\nz = torch.sigmoid(z)\nhit = z > 0.5",
    BINARY + PROBABLE + "loss = criterion(model(x), y)\nhit = model(v) > 0.5",
    BINARY + "loss = criterion((a * b).sum(1), y)\nhit = (c * d).sum(1) > 0.5",
    PROBABLE + "hit = model(x) > 0.5",
    "net = nn.Sequential(nn.Linear(4, 1))\nhit = torch.sigmoid(net(x)) > 0.5",
    # figures of training data under their name, or of held-out data as well
    "train_loss = evaluate(model, train_loader)",
    "val_loss = evaluate(model, val_loader)",
    "val_acc = knn_accuracy(train_set, x_val)",
    "val_acc = accuracy_of(train_set, feats_te)",
    "val_score = cross_val_score(model, train_data)",
    "val_loss = train_and_evaluate(model, train_loader)",
    "val_set = test_split(train_set)",
    "for e in range(9):\n    s = test(net, train_loader)\n    print(f'train {s} val {v}')",
    # held-out data that are a part of the training data
    (
        "train_set = CIFAR10(root, train=True)\nval_set = CIFAR10(root, train=True)\n"
        "loader = DataLoader(val_set, sampler=SubsetRandomSampler(rows))"
    ),
    "train_set = CIFAR10(root, train=True)\nval_set = Subset(CIFAR10(root, train=True), rows)",
    "train_set = Images(a, augment=True)\nval_set = Images(b, augment=False)\nDataLoader(val_set)",
    # one split, or one seed
    "train, val = random_split(data, [8, 2])",
    (
        "train, _ = random_split(a, [8, 2], generator=torch.Generator().manual_seed(0))\n"
        "_, val = random_split(a, [8, 2], generator=torch.Generator().manual_seed(0))"
    ),
    (
        "torch.manual_seed(0)\ntrain, _ = random_split(a, [8, 2])\n"
        "torch.manual_seed(0)\n_, val = random_split(a, [8, 2])"
    ),
    "train, _ = random_split(train_full, [8, 2])\n_, test = random_split(test_full, [2, 8])",
    (
        "train, _ = random_split(MNIST(r, train=True), [8, 2])\n"
        "_, test = random_split(MNIST(r, train=False), [2, 8])"
    ),
    BUILD + "train_x = build(900, seed=1)\nval_x = build(150, seed=2)",
    BUILD.replace("generator=g", "") + "train_x = build(900, seed=1)\nval_x = build(150, seed=1)",
    BUILD.replace("(n,", "(start, n,").replace("seed=0", "seed")
    + "train_x = build(0, 900, 1)\nval_x = build(900, 150, 1)",
    # a cache of one data set, of each, of all by path, or of the same rows
    CACHED + "rows = Rows(path)",
    CACHED + "train_set = Rows(path, transform=a)\nval_set = Rows(path, transform=b)",
    CACHED.replace("        self.paths", "        self.cache = {}\n        self.paths") + TWO_SETS,
    CACHED.replace("cache[i]", "cache[self.paths[i]]") + TWO_SETS,
)


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize("text", NOT_FOUND)
def test_correct_code_has_no_pattern(text: str) -> None:
    assert kinds(text) == set()
