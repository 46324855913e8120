"""Readers of samples, preprocessing, selection, axes, noise, padding and pairs, and their twins."""

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


def environment(step: str, use: str, more: str = "") -> str:
    """An environment whose `step` begins so, and what a script does with it."""
    lines = indent(dedent(step), " " * 8)
    return (
        "class World:\n    def reset(self):\n        self.state = np.zeros(4)\n"
        f"        return self.state\n    def step(self, a):\n{lines}\n"
        "        return self.state, 1.0, False\n"
        f"{dedent(more)}\nenv = World()\ns = env.reset()\nfor t in range(9):\n"
        f"{indent(dedent(use), '    ')}\n    s = s2\n"
    )


def module(init: str, forward: str) -> str:
    """A module with one layer and this forward pass."""
    return (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {init}\n    def forward(self, x):\n{indent(dedent(forward), ' ' * 8)}\n"
    )


def split(body: str, parts: str = "train_set, val_set") -> str:
    """A split at random, and what follows it."""
    return f"{parts} = random_split(full, [800, 200])\n{dedent(body)}"


def loop(body: str, over: str = "loader") -> str:
    """A loop over batches."""
    return f"for x, y in {over}:\n{indent(dedent(body), '    ')}\n"


STORE = "s2, r, done = env.step(a)\nbuffer.append((s, a, r, s2))"
WRITE = "self.state[0] += a"
RNN, GIVEN = "self.rnn = nn.LSTM(4, 8)", "self.rnn = nn.LSTM(4, 8, batch_first=True)"
LAST = "out, _ = self.rnn(x)\nreturn self.head(out[:, -1])"
IGNORE = "loss = nn.CrossEntropyLoss(ignore_index=-100)\n"

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
    "returned state": (
        environment(WRITE, STORE),
        environment("self.state[:] = self.state + a", STORE),
        environment(
            WRITE,
            "s2, r, done = env.step(a)\nmemory.push(s, a, r)",
            "class Memory:\n    def push(self, *row):\n        self.rows.append(row)\n",
        ),
    ),
    "aliased labels": (
        "labels = ids\nids[mask] = MASK\nloss = f(model(ids), labels)",
        "def hide(x):\n    target = x\n    x[:, 3] = 0\n    return x, target\nhide(a)",
        "labels = ids\nlabels[~mask] = -100\nloss = f(model(ids), labels)",
    ),
    "refitted": (
        "x_train = s.fit_transform(x_train)\nx_test = s.fit_transform(x_test)",
        "train = encode(a, build_vocab(train_texts))\nval = encode(b, build_vocab(val_texts))",
        "x = StandardScaler().fit_transform(x_train)\nz = StandardScaler().fit_transform(x_val)",
    ),
    "shared transform": (
        split("val_set.dataset.transform = plain"),
        split("train_set.dataset.transform = noisy\nval_set.dataset.transform = plain"),
        split("val_set.dataset.target_transform = None", "train_set, val_set, test_set"),
    ),
    "kept worst": (
        "for e in range(9):\n    if val_loss > best:\n        best = val_loss",
        "for e in range(9):\n    if acc < best_acc:\n        best_acc, state = acc, copy(model)",
        "if e > 2 and val_rmse >= best:\n    best = val_rmse",
    ),
    "reversed copy": (
        "for t in range(9):\n    q.load_state_dict(target.state_dict())",
        "class A:\n    def sync(self):\n        self.q.load_state_dict(self.q_target.state_dict())",
        "while running:\n    if t % 9 == 0:\n        net.load_state_dict(target_net.state_dict())",
    ),
    "batch as time": (
        module(RNN, LAST),
        module("self.rnn = nn.GRU(4, 8, num_layers=2)", "o, h = self.rnn(x)\nreturn o[:, -1, :]"),
        module("self.rnn = torch.nn.RNN(4, 8)", "o, h = self.rnn(x)\nz = o[:, -1]\nreturn z"),
    ),
    "softmax over queries": (
        "attn = scores.softmax(dim=-2)\nout = attn @ v",
        "def f(q, k, v):\n    att = F.softmax(q @ k.mT, dim=-2)\n    return drop(att) @ v\nf()",
        "attn_weights = torch.softmax(scores, dim=-2)\nout = torch.matmul(attn_weights, v)",
    ),
    "argmax of all": (
        loop("right += (model(x).argmax() == y).sum().item()"),
        loop("acc = (logits.argmax() == y).float().mean()", "val_dl"),
        "def accuracy(out, y):\n    return (out.argmax() == y).float().mean()\naccuracy(a, b)",
    ),
    "uniform noise": (
        module("pass", "return mu + torch.rand_like(std) * std"),
        module("pass", "eps = torch.rand_like(std)\nreturn mu + eps * std"),
        module("pass", "return sigma * torch.rand(4) + mean"),
    ),
    "rounded share": (
        "weight = min(1.0, step // warmup)",
        "s = LambdaLR(o, lambda it: min(1.0, (it + 1) // 300))",
        "beta = min(epoch // 10, 1)",
    ),
    "counted padding": (
        IGNORE + "y = pad_sequence(labels, batch_first=True)",
        IGNORE + "PAD = 0\ny = pad_sequence([tags for _, tags in batch], True, PAD)",
        "IGNORE = -1\nf(a, b, ignore_index=IGNORE)\ny = pad_sequence(tags, padding_value=0)",
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
    "returned state": (
        environment(WRITE, STORE.replace("(s, a", "(s.copy(), a")),
        environment("self.state = self.state.copy()\n" + WRITE, STORE),
        environment("self.state = self.state + a", STORE),
        environment(WRITE, "s2, r, done = env.step(a)\nrewards.append(r)"),
        environment(
            WRITE,
            "s2, r, done = env.step(a)\nmemory.add(s, a, r)",
            "class Memory:\n    def add(self, s, a, r):\n        self.states[self.at] = s\n",
        ),
    ),
    "aliased labels": (
        "labels = ids.clone()\nids[mask] = MASK\nloss = f(model(ids), labels)",
        "labels = ids\nids = ids.clone()\nids[mask] = MASK\nloss = f(model(ids), labels)",
        "y = values\ny[y < 0] = 0\nloss = f(model(x), y)",
        "target = batch\nbatch['x'] = 3\nf(batch, target)",
    ),
    "refitted": (
        "x_train = s.fit_transform(x_train)\nx_test = s.transform(x_test)",
        "vocab = build_vocab(train_texts)\nval = encode(val_texts, vocab)",
        "tsne = TSNE(2)\na = tsne.fit_transform(train_z)\nb = tsne.fit_transform(test_z)",
        "scaling.fit(val_logits)",
    ),
    "shared transform": (
        split("val_set.dataset = copy.copy(full)\nval_set.dataset.transform = plain"),
        split("train_set.dataset.transform = tf\nval_set.dataset.transform = tf"),
        split("val_set.dataset.transform = plain", "_, val_set"),
        split("for e in range(9):\n    val_set.dataset.transform = plain\n    test()"),
        split("loss.backward()\nval_set.dataset.transform = plain"),
        "val_set.dataset.transform = plain",
    ),
    "kept worst": (
        "if edits < best_score:\n    best_score = edits",  # of an edit distance
        "for e in range(9):\n    if val_loss < best:\n        best = val_loss",
        "if acc > best_acc:\n    best_acc = acc",
        "if -val_loss > best_loss:\n    best_loss = -val_loss",
        "if neg_loss > best:\n    best = neg_loss",
        "if fid_score < best:\n    best = fid_score",
        "if loss > best_loss:\n    best_loss, best_delta = loss, delta",
        "if val_loss > best:\n    patience += 1",
    ),
    "reversed copy": (
        "for t in range(9):\n    target.load_state_dict(q.state_dict())",
        "q.load_state_dict(target.state_dict())",
        "class A:\n    def __init__(self):\n        q.load_state_dict(target.state_dict())",
        "for t in range(9):\n    eval_net.load_state_dict(target.state_dict())",
        (
            "for t in range(9):\n    target.load_state_dict(q.state_dict())\n"
            "    if bad:\n        q.load_state_dict(target.state_dict())"
        ),
    ),
    "batch as time": (
        module(GIVEN, LAST),
        module("self.rnn = nn.LSTM(4, 8, 1, True, True)", LAST),
        module(RNN, "out, _ = self.rnn(x.swapaxes(0, 1))\nreturn out[-1]"),
        module(RNN, "out, _ = self.rnn(x.T)\nout = out.movedim(0, 1)\nreturn out[:, -1]"),
        module(RNN, "out, _ = self.rnn(x)\nreturn self.head(out[-1])"),
        module("self.rnn = nn.LSTM(4, 8, **options)", LAST),
    ),
    "softmax over queries": (
        "attn = scores.softmax(dim=-1)\nout = attn @ v",
        "attn = self.score(h).softmax(dim=-2)\nout = (attn * h).sum(1)",
        "attn = scores.softmax(dim=-2)\nattn = attn / attn.sum(-1, keepdim=True)\nout = attn @ v",
        "keys = keys.softmax(dim=-2)\nout = keys.mT @ v",
    ),
    "argmax of all": (
        loop("right += (model(x).argmax(1) == y).sum().item()"),
        loop("right += (model(x[None]).argmax() == y).sum().item()", "test_batches"),
        loop("right += (model(x).argmax() == y).float()", "zip(rows, labels)"),
        loop("right += model(x).argmax() == y"),
    ),
    "uniform noise": (
        module("pass", "return mu + torch.randn_like(std) * std"),
        module("pass", "eps = torch.rand_like(std)\neps = normal(eps)\nreturn mu + eps * std"),
        module("pass", "return accumulated + torch.rand(4) * std"),
        "mean = 3.0\nstd = 1.0\nx = mean + std * torch.rand(100, 4)",
    ),
    "rounded share": (
        "weight = min(1.0, step / warmup)",
        "workers = min(1, cores // 2)",
        "stage = min(3, epoch // 10)",
        "size = max(1, step // 10)",
    ),
    "counted padding": (
        IGNORE + "y = pad_sequence(labels, padding_value=-100)",
        IGNORE + "x = pad_sequence(words)",
        IGNORE + "y = pad_sequence(labels)\ny[y == 0] = -100",
        "PAD = vocab['<pad>']\nf(a, b, ignore_index=vocab.pad)\npad_sequence(labels, True, PAD)",
        "y = pad_sequence(labels)\nloss = (f(out, y) * mask).sum()",
        "PAD = 0\nf(a, b, ignore_index=0)\ny = pad_sequence(labels, padding_value=PAD)",
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


MISTAKE = "rng.shuffle(x)\nrng.shuffle(y)\n"


@pytest.mark.parametrize(
    "text",
    [
        'if args.fault == "x":\n' + indent(MISTAKE, "    "),
        "if cfg.shuffled:\n    pass\nelse:\n" + indent(MISTAKE, "    "),
        "def unused(x, y):\n" + indent(MISTAKE, "    "),
    ],
)
def test_what_only_an_option_runs_is_not_reported(text: str) -> None:
    assert kinds(MISTAKE) == {"unpaired shuffle"}
    assert read(text) == []


@pytest.mark.parametrize("text", [MISTAKE + "def f(:", "x = 1\n  y = 2", "a\0b"])
def test_a_source_that_does_not_parse_has_no_pattern(text: str) -> None:
    assert read(text) == []


def test_a_pattern_names_its_line_and_statement() -> None:
    (pattern,) = read("\n" + MISTAKE)
    assert (pattern.line, pattern.code) == (3, "rng.shuffle(y)")
