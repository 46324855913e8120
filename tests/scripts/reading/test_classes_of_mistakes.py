"""Seeds, orders, temperatures, indices and masks in sources, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read

STEP = "loss = model(x).sum()\nloss.backward()\noptimizer.step()\n"


def loop(body: str) -> str:
    """A loop over batches that trains."""
    return f"for step in range(100):\n{indent(dedent(body) + STEP, '    ')}"


def function(body: str, arguments: str = "x, y, mask=None") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(a, b)\n"


BATCH = "def batch():\n    {}\n    return rows[torch.randint(9, (4,), generator=g)]\n"
SEEDED = "g = torch.Generator().manual_seed(7)"
CACHE = (
    "loader = DataLoader(TensorDataset(x), batch_size=9, shuffle={})\n"
    "with torch.no_grad():\n    kept = torch.cat([teacher(b) for (b,) in loader])\n"
)
NET = "class Net(nn.Module):\n    def forward(self, x):\n        return {}\n"
PAIRS = "hard = (q * n).sum(-1, keepdim=True)\nlogits = torch.cat([hard, q @ d.t()], dim=1) / 0.1\n"
ACT = (
    "for t in range(9):\n    greedy = q(s).argmax(1)\n"
    "    a = np.where(explore, np.random.randint(4, size=8), greedy)\n"
    "    s2, r, done = env.step(a)\n    {}\n    s = s2\n"
)
CHOICE = (
    "model = nn.Linear(3, 4)\nfor name, p in model.named_parameters():\n"
    "    if 'lora' in name:\n        p.requires_grad = True\n"
    "optimizer = SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)\n"
)
IDS = "WORDS = 300\nembedding = nn.Embedding(WORDS + 2, 8)\n"
ROWS = "keep = (y >= 0).float()\nrows = F.cross_entropy(x, y.clamp(min=0), reduction='none')\n"
FLIP = (
    "def flip(image, box):\n    image = image.flip(-1)\n    box[:, {0}] = 32 - box[:, {0}]\n"
    "    return image, box\nfor cx, cy, w, h in flip(a, b)[1]:\n    pass\n"
)
SUMMED = "F.cross_entropy(x, y, ignore_index=0, reduction='sum')"

FOUND = {
    "repeated seed": (
        BATCH.format(SEEDED) + loop("x = batch()\n"),
        loop("torch.manual_seed(0)\nx = rows[torch.randperm(100)[:9]]\n"),
        loop("rng = np.random.default_rng(0)\nx = rows[rng.integers(100, size=9)]\n"),
        loop("x = rows[torch.randint(9, (4,), generator=torch.Generator().manual_seed(0))]\n"),
    ),
    "shuffled cache": (
        CACHE.format("True") + "data = TensorDataset(x, y, kept)\n",
        (
            "loader = DataLoader(TensorDataset(x), shuffle=True)\nout = []\nfor (b,) in loader:\n"
            "    out.append(teacher(b))\nkept = torch.cat(out)\ndata = TensorDataset(x, kept)\n"
        ),
    ),
    "shifted diagonal": (
        function(PAIRS + "return F.cross_entropy(logits, torch.arange(len(q)))", "q, d, n"),
    ),
    "unexecuted action": (ACT.format("memory.append((s, greedy, r, s2))"),),
    "one-sided temperature": (
        "T = 4.0\n"
        + function("return F.kl_div(F.log_softmax(x, -1), F.softmax(y / T, -1))", "x, y"),
        function("p = F.log_softmax(x, 1)\nq = (y / 3).softmax(1)\nreturn F.kl_div(p, q)", "x, y"),
        function("return F.kl_div(F.log_softmax(x / temp, 1), F.softmax(y, 1))", "x, y, temp=2.0"),
    ),
    "nothing frozen": (CHOICE,),
    "exchanged indices": (
        loop("mask[b, gx, gy] = 1\nboxes[b, :, gy, gx] = box\n"),
        loop("a[y, x] = 1\nb[x, y] = 2\n"),
    ),
    "batch normalised": (NET.format("F.normalize(self.net(x), dim=0)"),),
    "wrapped ids": (
        IDS + "ids = torch.from_numpy(np.array(words).astype(np.uint8)).long()\n",
        IDS + "ids = torch.tensor(words, dtype=torch.uint8).long()\n",
        "rows = nn.Embedding(128000, 8)\nids = np.fromfile(f).astype(np.uint16).astype(np.int64)\n",
    ),
    "late merge": (
        function("ids = x[x != BLANK]\nreturn torch.unique_consecutive(ids)"),
        function("x = x[x != blank]\nx = torch.unique_consecutive(x)\nreturn x"),
        function("return [k for k, _ in groupby([t for t in x if t != blank])]"),
    ),
    "unmasked sum": (function(ROWS + "return rows.sum() / keep.sum().clamp(min=1)"),),
    "ignored counted": (function(f"return {SUMMED} / y.numel()"),),
    "positives alone": (
        function("return F.binary_cross_entropy_with_logits(x[y > 0], y[y > 0])"),
        function("on = y == 1\nreturn F.binary_cross_entropy(x[on], y[on])"),
    ),
    "mirrored otherwise": (FLIP.format(1), FLIP.format(0).replace("(-1)", "(-2)")),
    "self copy": (
        loop("target.load_state_dict(target.state_dict())\n"),
        loop("for a, b in zip(ema.parameters(), ema.parameters()):\n    a.lerp_(b, 0.1)\n"),
        loop("if step % 9 == 0:\n    target = copy.deepcopy(target)\n"),
    ),
}

SILENT = (
    SEEDED + "\n" + BATCH.format("pass") + loop("x = batch()\n"),
    BATCH.format(SEEDED) + "x = batch()\n" + loop(""),
    BATCH.format(SEEDED) + loop("if step % 9 == 0:\n    print(f(batch()))\n"),
    (
        "def noise():\n    g = torch.Generator().manual_seed(0)\n"
        "    return torch.randn(4, generator=g)\n"
    )
    + loop("x = x @ noise()\n"),
    loop("torch.manual_seed(step)\nx = rows[torch.randperm(100)[:9]]\n"),
    CACHE.format("False") + "data = TensorDataset(x, y, kept)\n",
    CACHE.format("True") + "print(kept.mean(0))\n",
    function(PAIRS + "return F.cross_entropy(logits, torch.arange(len(q)) + 1)", "q, d, n"),
    function(
        "same = (q * d).sum(-1, keepdim=True)\nlogits = torch.cat([same, q @ queue.t()], dim=1)\n"
        "return F.cross_entropy(logits, torch.zeros(len(q)))",
        "q, d",
    ),
    ACT.format("memory.append((s, a, r, s2))"),
    # a policy stores what it has sampled, and the environment gets it within its limits
    (
        "for t in range(9):\n    a = policy(s)\n    limited = np.clip(a, -1, 1)\n"
        "    s2, r, done = env.step(limited)\n    memory.append((s, a, r, s2))\n    s = s2\n"
    ),
    "T = 4.0\n"
    + function("return F.kl_div(F.log_softmax(x / T, -1), F.softmax(y / T, -1))", "x, y"),
    "T = 0.5\n" + function("return F.kl_div(F.log_softmax(x, -1), F.softmax(y / T, -1))", "x, y"),
    "T = 4.0\n"
    + function("x = x / T\nreturn F.kl_div(F.log_softmax(x, 1), F.softmax(y / T, 1))", "x, y"),
    "for p in model.parameters():\n    p.requires_grad_(False)\n" + CHOICE,
    CHOICE.replace("model = nn.Linear(3, 4)", "model = get_model()"),
    "from adapters import add\n" + CHOICE.replace("4)\n", "4)\nadd(model)\n", 1),
    loop("mask[b, gy, gx] = 1\nboxes[b, :, gy, gx] = box\n"),
    loop("m[i, j] = v\nm[j, i] = v\n"),
    NET.format("F.normalize(self.net(x), dim=-1)"),
    NET.format("x @ F.normalize(self.weight, dim=0)"),
    IDS + "ids = torch.from_numpy(np.array(words).astype(np.int16)).long()\n",
    IDS + "masks = torch.from_numpy((words > 0).astype(np.uint8)).long()\n",
    function("ids = torch.unique_consecutive(x)\nreturn ids[ids != BLANK]"),
    function("x = torch.unique_consecutive(x)\nx = x[x != BLANK]\nreturn x"),
    function(ROWS + "return (rows * keep).sum() / keep.sum()"),
    function(ROWS + "rows = rows * keep\nreturn rows.sum() / keep.sum()"),
    function(
        "keep = y != -100\nrows = F.cross_entropy(x, y, reduction='none')\n"
        "return rows.sum() / keep.sum()"
    ),
    function(f"return {SUMMED} / (y != 0).sum()"),
    loop("target.load_state_dict(model.state_dict())\n"),
    loop("state = copy.deepcopy(state)\n"),
    function("return F.binary_cross_entropy(x, y)"),
    function("return F.binary_cross_entropy(x[mask], y[mask])"),
    function("return F.binary_cross_entropy(x[y >= 0], y[y >= 0])"),
    function(
        "on = y == 1\noff = y == 0\n"
        "return F.binary_cross_entropy(x[on], y[on]) + F.binary_cross_entropy(x[off], y[off])"
    ),
    FLIP.format(0),
    FLIP.format(1).replace("(-1)", "(-2)"),
    FLIP.format(1).replace("cx, cy", "cy, cx"),
)


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in FOUND.items() for t in all_])
def test_found(kind: str, text: str) -> None:
    assert [pattern.kind for pattern in read(text)] == [kind]


@pytest.mark.parametrize("text", SILENT)
def test_silent(text: str) -> None:
    assert read(text) == []
