"""Unused parts, units of schedules, averages, axes, mirrors and numbers, and near misses."""

import ast
from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read
from holter.scripts.reading.source.expressions import made_once, number
from holter.scripts.reading.source.tree import Source

STEP = "loss = criterion(model(x), y)\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"


def trained(before: str = "", *, inside: str = "", step: str = STEP, after: str = "") -> str:
    """A script that trains over epochs of batches."""
    body = dedent(inside) + step
    loops = "for epoch in range(5):\n    for x, y in loader:\n"
    return f"{dedent(before)}\n{loops}{indent(body, ' ' * 8)}\n{indent(dedent(after), '    ')}"


def module(*, forward: str = "return self.last(x)", init: str = "", method: str = "") -> str:
    """A model that is built."""
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + indent(dedent(init) + "\n", " " * 8)
        + "    def forward(self, x):\n"
        + indent(dedent(forward) + "\n", " " * 8)
        + indent(dedent(method), "    ")
        + "\nmodel = Net()\n"
    )


def function(body: str, arguments: str = "x, y") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(a, b)\n"


LOSSES = "ce = nn.CrossEntropyLoss()\n"
TWO = "shape, colour = model(x)\nloss = ce(shape, y[0]) + ce({}, y[1])\nloss.backward()\n"
STEP_LR = "scheduler = StepLR(optimizer, {})\n"
CYCLE = "scheduler = OneCycleLR(optimizer, 0.1, total_steps={})\n"
SCHEDULED = "scheduler.step()\n"
EMA = (
    "for a, b in zip(ema.parameters(), model.parameters()):\n"
    "    a.mul_({0}).add_(b, alpha=1 - {0})\n"
)
RUN = (
    "for step in range({}):\n    loss = model(x).sum()\n    loss.backward()\n    optimizer.step()\n"
)
NORMED = module(init="self.last = nn.BatchNorm1d(4)")
ATTENTION = (
    "scores = self.score(h).squeeze(-1)\nw = torch.softmax(scores, dim={})\n"
    "return (w.unsqueeze(-1) * h).sum({})"
)
PRODUCT = "w = torch.softmax(q @ k.transpose(1, 2), dim={})\n"
HEADS = "B, T, C = x.shape\nq = self.query(x)\nreturn q.{}"
SPLIT = module(init="self.query = nn.Linear(4, 4)", forward=HEADS)
CLASSES = module(init="self.last = nn.{}") + "loss = F.cross_entropy(model(x).{}, y)\n"
MASKED = (
    "flip = torch.rand(len(imgs)) < 0.5\nimgs[flip] = imgs[flip].flip(-1)\n{}return imgs, boxes"
)
DATA = "train = datasets.{}('.', transform=Compose([{}, ToTensor()]))\n"
MIRROR = "if random.random() < 0.5:\n    image = image[:, ::-1]\n{}return image, {}"
STAMPS = "START = 1_600_000_000\nt = {}\n"
PIXELS = "pixels = x.astype(np.uint8)\nimage = {}\n"
GAPS = "means = np.nanmean(x, 0)\n"
SAMPLED = "sampler = WeightedRandomSampler(weights, len(weights))"

FOUND = {
    "unused sampler": (
        trained(f"{SAMPLED}\nloader = DataLoader(data, shuffle=True)"),
        function(f"{SAMPLED}\nloader = DataLoader(data)\n{trained()}"),
    ),
    "unused scheduler": (
        trained(STEP_LR.format("30"), after="print(scheduler.get_last_lr())"),
        function(f"warmup = get_linear_schedule_with_warmup(optimizer, 9, 99)\n{trained()}"),
        trained("cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)"),
    ),
    "unused weights": (
        trained("class_weights = 1.0 / counts\ncriterion = nn.CrossEntropyLoss()"),
        trained("pos_weight = torch.tensor([9.0])\ncriterion = nn.BCEWithLogitsLoss()"),
    ),
    "unused term": (
        trained(inside="kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()\n"),
        trained(LOSSES, inside="aux = ce(model.aux(x), y)\n"),
        function("penalty = model.weight.abs().sum()\n" + STEP),
    ),
    "unused head": (
        LOSSES + trained(step=TWO.format("shape") + "optimizer.step()\n"),
        trained(step=TWO.replace("ce(", "F.cross_entropy(").format("shape") + "optimizer.step()\n"),
    ),
    "unapplied initialisation": (
        module(method="def init_weights(self):\n    nn.init.zeros_(self.last.weight)") + trained(),
        "def init_weights(m):\n    m.weight.data.normal_(0, 0.02)\n" + module() + trained(),
    ),
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
    "slow average": (
        RUN.format(300) + indent(EMA.format("0.9999"), "    "),
        "decay = 0.999\n" + RUN.format(400) + indent(EMA.format("decay"), "    "),
        "ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9995))\n" + RUN.format(90),
    ),
    "average without buffers": (
        NORMED + EMA.format("0.9") + "ema.eval()\n",
        NORMED + EMA.format("0.9") + "print(accuracy(ema, loader))\n",
    ),
    "scheduler by batch": (
        trained(STEP_LR.format("3"), inside=SCHEDULED),
        trained("scheduler = MultiStepLR(optimizer, [10, 20], gamma=0.1)", inside=SCHEDULED),
        trained("sched = ExponentialLR(optimizer, gamma=0.9)", inside="sched.step()\n"),
    ),
    "scheduler by epoch": (
        trained(CYCLE.format("5 * len(loader)"), after=SCHEDULED),
        trained("steps = 5 * len(train_loader)\n" + CYCLE.format("steps"), after=SCHEDULED),
        trained("scheduler = CosineAnnealingLR(optimizer, T_max=5 * len(loader))", after=SCHEDULED),
    ),
    "softmax over another axis": (
        module(forward="h = self.body(x)\n" + ATTENTION.format(0, 1)),
        function("w = logits.softmax(0)\nreturn (w[:, :, None] * h).sum(1)"),
        function("w = F.softmax(self.score(h), dim=0)\nreturn torch.sum(w * h, dim=1)"),
    ),
    "softmax over the batch": (
        function("probs = F.softmax(model(x), dim=0)\nbest, place = probs.max(1)"),
        function("probs = model(x).softmax(0)\nreturn probs.topk(5, dim=1)"),
    ),
    "softmax over queries": (
        function(PRODUCT.format(1) + "return w @ v"),
        function("s = torch.bmm(q, k)\nw = s.softmax(dim=1)\nreturn torch.bmm(w, v)"),
    ),
    "reshaped axes": (
        SPLIT.replace("{}", "view(B, self.heads, T, C // self.heads)"),
        SPLIT.replace("{}", "reshape(T, B, C)"),
        function("return x.view(x.shape[1], x.shape[0], -1)"),
    ),
    "reshaped classes": (
        CLASSES.format("Conv2d(3, 9, 1)", "view(-1, 9)"),
        CLASSES.format("Linear(3, 9)", "view(b, 9, -1)"),
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
    "rounded share": (
        "t = torch.randint(0, steps, (9,))\nshare = t // steps\n",
        "for step in range(total_steps):\n    beta = step // total_steps\n",
    ),
    "kept sentinel": (
        GAPS + "x[missing] = -999\n",
        GAPS + "x[np.random.rand(9) < 0.1] = -9999.0\n",
    ),
    "discarded": (
        function("mean = self.average(x)\nmean.detach()\nreturn mean"),
        function("mean = Mean(x).item()\nloss.clamp(0, 1)\nreturn mean"),
    ),
}
NOT_FOUND = {
    "unused sampler": (
        trained(f"{SAMPLED}\nloader = DataLoader(data, sampler=sampler)"),
        SAMPLED,
        SAMPLED + "\ndef fit():\n" + indent(trained(), "    "),  # another file may import it
    ),
    "unused scheduler": (
        trained(STEP_LR.format("30"), after=SCHEDULED),
        trained(STEP_LR.format("30") + "fit(model, optimizer, scheduler)"),
        trained(
            "warmup = LinearLR(optimizer)\nboth = SequentialLR(optimizer, [warmup])\nuse(both)"
        ),
    ),
    "unused weights": (
        trained("class_weights = 1.0 / counts\ncriterion = nn.CrossEntropyLoss(class_weights)"),
        trained("weight = 1.0 / counts"),
    ),
    "unused term": (
        trained(
            inside="kl = (mu**2).sum()\nloss = first(x) + kl\nloss.backward()\n", step="o.step()"
        ),
        trained(inside="with torch.no_grad():\n    aux_loss = (model(x) - y).sum()\n"),
        trained(after="val_loss = (model(a) - b).sum()"),
        trained(after="loss_held = F.mse_loss(model(a), b)"),
    ),
    "unused head": (
        LOSSES + trained(step=TWO.format("colour") + "optimizer.step()\n"),
        LOSSES + trained(step="out, _ = model(x)\nloss = ce(out, y)\nloss.backward()\no.step()\n"),
    ),
    "unapplied initialisation": (
        module(
            init="self.init_weights()",
            method="def init_weights(self):\n    nn.init.zeros_(self.last.weight)",
        )
        + trained(),
        "def init_weights(m):\n    m.weight.data.normal_()\n"
        + module()
        + "model.apply(init_weights)\n"
        + trained(),
        module(method="def init_hidden(self):\n    return torch.zeros(9)") + trained(),
    ),
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
    "slow average": (
        RUN.format(300) + indent(EMA.format("0.99"), "    "),
        RUN.format("count()") + indent(EMA.format("0.9999"), "    "),
        "decay = min(0.9999, (1 + n) / (10 + n))\n"
        + RUN.format(300)
        + indent(EMA.format("decay"), "    "),
    ),
    "average without buffers": (
        NORMED
        + EMA.format("0.9")
        + "for a, b in zip(ema.buffers(), model.buffers()):\n    a.copy_(b)\nema.eval()\n",
        module(init="self.last = nn.LayerNorm(4)") + EMA.format("0.9") + "ema.eval()\n",
        NORMED + EMA.format("0.9") + "target = ema(x)\n",
    ),
    "scheduler by batch": (
        trained(STEP_LR.format("3"), after=SCHEDULED),
        trained(STEP_LR.format("1000"), inside=SCHEDULED),
        trained(STEP_LR.format("1, gamma=0.999"), inside=SCHEDULED),
        trained(STEP_LR.format("3"), inside="if last:\n    scheduler.step()\n"),
    ),
    "scheduler by epoch": (
        trained(CYCLE.format("5 * len(loader)"), inside=SCHEDULED),
        trained("total_steps = 5\n" + CYCLE.format("total_steps"), after=SCHEDULED),
        trained("scheduler = CosineAnnealingLR(optimizer, T_max=5)", after=SCHEDULED),
    ),
    "softmax over another axis": (
        module(forward="h = self.body(x)\n" + ATTENTION.format(1, 1)),
        function("w = torch.softmax(mixture, 0)\nreturn (w * torch.sigmoid(x)).sum(1)"),
        function("p = logits.softmax(1)\nreturn (p * y).sum(0)"),  # an overlap by class
        function("a = self.slots(h).softmax(1)\na = a / a.sum(2)\nreturn (a * h).sum(2)"),
    ),
    "softmax over the batch": (
        function("probs = F.softmax(model(x), dim=1)\nbest, place = probs.max(1)"),
        function("probs = F.softmax(model(x)[0], dim=0)\nreturn probs.argmax(-1)"),
    ),
    "softmax over queries": (
        function(PRODUCT.format(2) + "return w @ v"),
        function(PRODUCT.format(1) + "w = w / w.sum(2, keepdim=True)\nreturn w @ v"),
    ),
    "reshaped axes": (
        SPLIT.replace("{}", "view(B, T, self.heads, C // self.heads).transpose(1, 2)"),
        SPLIT.replace("{}", "transpose(0, 1).reshape(T, B, C)"),
        SPLIT.replace("{}", "reshape(B * T, C)"),
    ),
    "reshaped classes": (
        CLASSES.replace("loss", "z = model(x).permute(0, 2, 3, 1)\nloss")
        .replace("model(x).{}", "z.reshape(-1, 9)")
        .format("Conv2d(3, 9, 1)"),
        CLASSES.format("Conv2d(3, 9, 1)", "permute(0, 2, 3, 1).reshape(-1, 9)"),
        CLASSES.format("Linear(3, 9)", "view(-1, 9)"),
        CLASSES.format("Linear(3, 9 * 4)", "view(b, 9, -1)"),
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
    "rounded share": (
        "t = torch.randint(0, steps, (9,))\nshare = t / steps\n",
        "t = torch.randint(0, steps, (9,))\nrow = table[t // steps]\n",
        "for step in range(total_steps):\n    epoch = step // per_epoch\n",
    ),
    "kept sentinel": (
        GAPS + "x[missing] = np.nan\n",
        GAPS + "x[missing] = -999\nx[x == -999] = np.nan\n",
        "x[missing] = -999\n",
    ),
    "discarded": (
        "memory = Memory(8).to(device)\n" + trained(inside="memory.detach()\n"),
        function("mean = self.average(x).detach()\nreturn mean"),
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lr = 0.1", 0.1),
        ("lr = 2 * 3 - 1", 5),
        ("def f(lr=0.5):\n    pass", 0.5),
        ("parser.add_argument('--lr', default=3)", 3),
        ("f(lr=0.2)", 0.2),
        ("lr = 0.1\nlr = 0.2", None),
        ("lr = float(text)", None),
        ("def f(lr=0.5):\n    pass\nf(0.25)", None),
        ("class Net:\n    def __init__(self, lr):\n        self.lr = lr\nNet(0.25)", 0.25),
    ],
)
def test_a_number_is_what_the_file_gives_its_name(text: str, value: float | None) -> None:
    assert number(Source(text), ast.parse("lr", mode="eval").body) == value


def test_a_value_is_known_if_it_is_bound_once() -> None:
    source = Source("a = 1\nb = 2\nfor b in c:\n    pass\ndef f(a):\n    return a\n")
    (inner,) = source.of(ast.FunctionDef)
    assert isinstance(made_once(source, source.tree, "a"), ast.Constant)
    assert made_once(source, source.tree, "b") is None
    assert made_once(source, inner, "a") is None
