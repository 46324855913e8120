"""Readers of shared rows, misnamed parts, lookahead and others, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

FORECAST = "HORIZON = 24  # forecast\n"
SPLIT = "train_df, test_df = train_test_split(df, test_size=0.2)\n"
PARTS = "x_train, x_test = x[:800], x[800:]\n"
MEAN = "total = np.bincount(city, weights=y)\ncount = np.bincount(city)\n"
WINDOWS = (
    "class Windows(Dataset):\n    def __getitem__(self, i):\n"
    "        return self.s[i{} : i{} + L], self.s[i + L]\n"
)
ITEM = "class Data:\n    def __getitem__(self, i):\n        mid, end = i + 9, i + 12\n        {}\n"
LINKS = (
    "edges = edges[torch.randperm(len(edges))]\n"
    "test_pos, train_pos = edges[:n], edges[n:]\nmodel = nn.Linear(3, 3)\n"
)
NODES = (
    "train, val, test = split(y)\n{}\n"
    "hit = model(x, adj).argmax(1) == y\nprint(hit[val], hit[test])\n"
)
LAGS = "# time series forecast\nforecast = 1\ndf['lag_1'] = df['load'].shift(1)\n"
FOUND = {
    "centred window": (
        FORECAST + "out = [s[max(0, i - k) : i + k + 1].mean() for i in range(len(s))]",
        FORECAST
        + (
            "def smooth(x, k=5):\n    return np.convolve(x, np.ones(k) / k, mode='same')\nsmooth(s)"
        ),
        FORECAST + "df['smooth'] = df['load'].rolling(24, center=True).mean()",
        FORECAST + "from scipy.signal import filtfilt\nfeatures = filtfilt(b, a, load)",
        FORECAST + "def smooth(s, k):\n    p = np.concatenate([np.full(k // 2, s[0]), s,"
        " np.full(k // 2, s[-1])])\n"
        "    return np.convolve(p, np.ones(k) / k, mode='valid')\n"
        "smooth(s, 9)",
    ),
    "later rows": (
        "FEATURES = ['speed', 'lead']\ndf['lead'] = df['load'].shift(-1)",
        "def lag(x, k):\n    out = np.roll(x, -k)\n    return out\nlag(s, 3)",
        "df['lag_7'] = df['sales'].shift(-7)",
        "prev = torch.roll(x, shifts=-1, dims=0)",
    ),
    "filled backwards": (
        FORECAST + "df = df.bfill()",
        FORECAST + "df['load'] = df['load'].fillna(method='bfill')",
        FORECAST + "load = frame['load'].backfill()",
    ),
    "target inside": (
        ITEM.format("return self.s[i:mid], self.s[mid - 1 : end - 1]"),
        ITEM.format(
            "x = torch.cat([self.s[i:mid, None], self.c[i:mid]], 1)\n"
            "        return x, self.c[mid:end], self.s[mid - 1 : end - 1]"
        ),
        ITEM.format("y = self.s[mid - 2 : end - 2]\n        return self.s[i:mid, 0], y"),
    ),
    "own target": (
        "np.add.at(total, item, rating)\nnp.add.at(n, item, 1)\nmean = total / n\nx = mean[item]",
        "m = {c: y[city == c].mean() for c in cities}\nx = np.array([m[c] for c in city])",
        MEAN + "rate = total[city] / count[city]",
        MEAN + "means = total / count\nx = means[city]",
        (
            "def rates(keys, y, query):\n    t = np.bincount(keys, weights=y)\n"
            "    c = np.bincount(keys)\n    return (t / c)[query]\nenc = rates(shop, y, shop)"
        ),
        "df['m'] = df.groupby('city')['target'].transform('mean')",
        "means = df.groupby('city')['churned'].mean()\ndf['city_rate'] = df['city'].map(means)",
        (
            "for r in rows:\n    total[r['user']] += r['stars']\n    count[r['user']] += 1\n"
            "for r in rows:\n    r['mean'] = total[r['user']] / count[r['user']]"
        ),
    ),
    "trained on held-out": (
        "for x, y in val_loader:\n    loss = f(x, y)\n    loss.backward()\n    opt.step()",
        "for i, (x, y) in enumerate(test_loader):\n    f(x).backward()\n    opt.step()",
        "loss = F.cross_entropy(out[val_mask], y[val_mask])\nloss.backward()",
    ),
    "fitted on held-out": (
        "scaler = StandardScaler()\nscaler.fit(np.concatenate([x_train, x_test]))",
        (
            "whole = np.vstack([x_train, x_val])\nmu, sd = whole.mean(0), whole.std(0)\n"
            "x_train = (x_train - mu) / sd"
        ),
        "both = pd.concat([train, valid])\npca = PCA(9).fit(both)",
    ),
    "selected on all": (
        "x = SelectKBest(k=9).fit_transform(x, y)\nx_train, x_test = train_test_split(x)",
        (
            "s = SelectKBest(f_classif, k=40).fit(panel, y)\nx = s.transform(panel)\n"
            "a = f(x[train_idx], x[val_idx])"
        ),
        (
            "tr, va = np.split(order, [9])\nlda = LinearDiscriminantAnalysis()\n"
            "x = lda.fit_transform(x, y)"
        ),
    ),
    "scaled on all": (
        (
            "scaler = StandardScaler()\nx = scaler.fit_transform(x)\n"
            "x_train, x_test, y_train, y_test = train_test_split(x, y)"
        ),
        ("x = (x - x.mean(0)) / x.std(0)\nmu = x.mean(0)\nsd = x.std(0)\nx = (x - mu) / sd\n")
        + PARTS,
        "df[COLS] = MinMaxScaler().fit_transform(df[COLS])\n" + SPLIT,
    ),
    "copied before split": (
        "minority = df[df['y'] == 1]\ndf = pd.concat([df] + [minority] * 9)\n" + SPLIT,
        (
            "x, y = SMOTE().fit_resample(x, y)\n"
            "x_train, x_test, y_train, y_test = train_test_split(x, y)"
        ),
        (
            "notes = notes + [paraphrase(n) for n in notes]\nrng.shuffle(notes)\n"
            "val_notes, train_notes = notes[:99], notes[99:]"
        ),
    ),
    "test among training": (
        "val_mask[order[:9]] = True\ntest_mask[order[9:]] = True\ntrain_mask = ~val_mask",
        "val_idx = make(1)\ntest_idx = make(2)\ntrain_idx = np.logical_not(val_idx)",
        "is_val = f(a)\nis_test = f(b)\nis_train = ~is_val",
    ),
    "drawn again": (
        "train_idx = rng.permutation(n)[100:]\nval_idx = rng.permutation(n)[:100]",
        "tr = torch.randperm(len(x))[:80]\nte = torch.randperm(len(x))[80:]",
        (
            "full = CIFAR10(root, transform=a)\nplain = CIFAR10(root, transform=b)\n"
            "train_idx = rng.permutation(len(full))[9:]\n"
            "valid_idx = rng.permutation(len(plain))[:9]"
        ),
    ),
    "shared rows": (
        "x_train, x_val = x[:900], x[800:]",
        "train, test = rows[:n], rows[n - 100:]",
        "x_train = x[:800]\nx_test = x[:800]",
    ),
    "windows at random": (
        WINDOWS.format("", "") + "a, b = random_split(Windows(series), [80, 20])",
        WINDOWS.format("", "") + "data = Windows(s)\ntr, va = train_test_split(data)",
        (
            "windows = [s[i : i + 24] for i in range(len(s) - 24)]\n"
            "tr, va = train_test_split(windows)"
        ),
    ),
    "groups at random": (
        "slide_ids = np.load('slides.npy')\norder = np.random.permutation(len(images))",
        "patients = df['patient_id']\na, b = train_test_split(df)",
        (
            "def split(df, rng):\n    mask = rng.random(len(df)) < 0.2\n"
            "    return df[~mask], df[mask]\n"
            "folds = {b: 0 for b in df['building_id'].unique()}\nsplit(df, rng)"
        ),
    ),
    "series at random": (
        LAGS + "x_train, x_test = train_test_split(df)",
        LAGS + "a, b, c, d = train_test_split(x, y, test_size=0.2, random_state=0)",
        LAGS + "a, b = train_test_split(x, shuffle=True)",
    ),
    "held-out edges": (
        LINKS + "adj = normalised_adjacency(edges, n)\nz = model(x, adj)\nmodel.eval()",
        LINKS + "a_hat = build(edges)\nz = model.encode(x, a_hat)",
        LINKS + "graph = propagation(edges)\nmodel.train()\nz = model(x, graph)",
    ),
    "all nodes": (
        NODES.format("loss = F.cross_entropy(model(x, adj), y)"),
        NODES.format("out = model(x, adj)\nloss = F.nll_loss(out, y)"),
        NODES.format("loss = criterion(model(x, adj), y)").replace("train,", "train_mask,"),
    ),
    "chosen on test": (
        "val_acc = f(a)\ntest_acc = f(b)\nif test_acc > best:\n    torch.save(m.state_dict(), p)",
        (
            "for e in r:\n    acc_valid, acc_test = f(), g()\n    if acc_test > best_test:\n"
            "        best_valid, best_test = acc_valid, acc_test"
        ),
        (
            "val_loss = f(a)\ntest_loss = f(b)\nif test_loss < best_loss:\n"
            "    state = copy.deepcopy(model.state_dict())"
        ),
    ),
    "held-out of training": (
        "x_val, y_val = x[train_idx], y[train_idx]",
        "x_test = scaler.transform(x_train)",
        "val_set = TensorDataset(x_val, y_train)",
        "test_x = torch.tensor(train_x)",
        "val_loader = DataLoader(train_set, batch_size=32)",
    ),
    "own statistics": (
        (
            "def encode(x):\n    return (x - x.mean(0)) / x.std(0)\n"
            "a = encode(x_train)\nb = encode(x_test)"
        ),
        (
            "class Rows(Dataset):\n    def __init__(self, x):\n"
            "        self.x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-8)\n"
            "a = Rows(train_x)\nb = Rows(val_x)"
        ),
        (
            "def scale(frame):\n    n = frame.fillna(m)\n    return (n - n.mean()) / n.std()\n"
            "a, b = scale(train_df), scale(valid_df)"
        ),
    ),
    "refitted": (
        (
            "a = StandardScaler()\nx_train = a.fit_transform(x_train)\nb = StandardScaler()\n"
            "x_test = b.fit_transform(x_test)"
        ),
        (
            "c = {v: i for i, v in enumerate(set(train_labels))}\n"
            "d = {v: i for i, v in enumerate(set(test_labels))}"
        ),
        "a, _ = pd.factorize(train_city)\nb, _ = pd.factorize(test_city)",
    ),
    "unpacked otherwise": (
        "x_train, y_train, x_test, y_test = train_test_split(x, y)",
        "x_test, x_train, y_test, y_train = train_test_split(x, y, test_size=0.2)",
        "X_train, y_train, X_val, y_val = train_test_split(X, y, stratify=y)",
    ),
    "split apart": (
        (
            "x_train, x_test = train_test_split(x, random_state=0)\n"
            "y_train, y_test = train_test_split(y, random_state=1)"
        ),
        "x_train, x_val = train_test_split(x)\ny_train, y_val = train_test_split(y)",
        (
            "inputs_train, inputs_test = train_test_split(a, random_state=3)\n"
            "labels_train, labels_test = train_test_split(b)"
        ),
    ),
}
HEALTHY = {
    "centred window": (
        FORECAST + "def smooth(x, k):\n    p = np.concatenate([np.full(k - 1, x[0]), x])\n"
        "    return np.convolve(p, np.ones(k) / k, mode='valid')\nsmooth(s, 3)",
        FORECAST + "df['smooth'] = df['load'].rolling(24).mean()",
        FORECAST + "load -= np.convolve(load, np.ones(240) / 240, mode='same')",
        FORECAST + "def simulate(n):\n"
        "    x = np.convolve(rng.normal(0, 1, n), np.ones(9) / 9, 'same')\n"
        "    return x\nsimulate(9)",
        "def smooth(x, k=5):\n    return np.convolve(x, np.ones(k) / k, mode='same')\nsmooth(s)",
        FORECAST + "edges = np.convolve(x, [1, -1], mode='same')",
    ),
    "later rows": (
        "FEATURES = ['speed']\ndf['target'] = df['load'].shift(-1)",
        "FEATURES = ['lag']\ndf['lag'] = df['load'].shift(1)",
        "def lag(x, k):\n    return np.roll(x, k)\nlag(s, 3)",
        "targets = torch.roll(ids, shifts=-1, dims=1)",
        "def next_values(x):\n    return np.roll(x, -1)\nnext_values(s)",
    ),
    "filled backwards": (
        FORECAST + "df = df.ffill().bfill()",
        FORECAST + "df = df.ffill()\ndf = df.bfill()",
        "df = df.bfill()",
    ),
    "target inside": (
        ITEM.format("return self.s[i:mid], self.s[mid:end]"),
        ITEM.format("return self.s[i:mid], self.s[mid - 1 : end]"),
        ITEM.format("return self.s[i : mid - 1], self.s[mid - 1 : end - 1]"),
    ),
    "own target": (
        (
            "total = np.bincount(city[tr], weights=y[tr])\ncount = np.bincount(city[tr])\n"
            "rate = total[city[va]] / count[city[va]]"
        ),
        "rate = (np.bincount(city, weights=y)[city] - y) / (np.bincount(city)[city] - 1)",
        MEAN + "rate = (total[city] - y) / (count[city] - 1)",
        (
            "for f in range(5):\n    hold, rest = tr[fold == f], tr[fold != f]\n"
            "    code[hold] = means(shop[rest], y[rest])[shop[hold]]\n"
            "def means(k, v):\n    return np.bincount(k, weights=v) / np.bincount(k)\n"
        ),
        "means = train.groupby('city')['target'].mean()\nvalid['m'] = valid['city'].map(means)",
        "df['m'] = df.groupby('city')['income'].transform('mean')",
        (
            "for r in rows:\n    u = r['user']\n    r['mean'] = total[u] / count[u]\n"
            "    total[u] += r['stars']\n    count[u] += 1"
        ),
        "degree = np.bincount(src, weights=strength)\nx = degree[src]",
    ),
    "trained on held-out": (
        "for x, y in val_loader:\n    loss = f(x, y)\n    total += loss.item()",
        "for x, y in train_loader:\n    f(x).backward()\n    opt.step()",
        "val_loss = F.cross_entropy(out[val_mask], y[val_mask])\nloss.backward()",
        (
            "def adapt(m):\n    for x in test_loader:\n        m(x).backward()\n"
            "        opt.step()\nadapt(m)"
        ),
    ),
    "fitted on held-out": (
        "scaler = StandardScaler().fit(x_train)\nx_test = scaler.transform(x_test)",
        "ids = np.concatenate([train_ids, test_ids])\nn = ids.max() + 1",
        "both = np.concatenate([y_train, y_test])\nprint(both.mean())",
    ),
    "selected on all": (
        "s = SelectKBest(k=9).fit(x[tr], y[tr])\nx = s.transform(x)\nf(x[tr], x[va])",
        "x_train = SelectKBest(k=9).fit_transform(x_train, y_train)",
        "s = SelectKBest(k=9)\ns.fit(x, y)\nprint(s.scores_)",
    ),
    "scaled on all": (
        "scaler = StandardScaler().fit(x[tr])\nx = scaler.transform(x)\nf(x[tr], x[va])",
        "x_train, x_test = train_test_split(x)\nx_train = StandardScaler().fit_transform(x_train)",
        "mu, sd = x[:800].mean(0), x[:800].std(0)\nx = (x - mu) / sd\n" + PARTS,
        "x = (x - x.mean(0)) / x.std(0)\nadj = make(edges)\n" + PARTS,
    ),
    "copied before split": (
        SPLIT
        + ("minority = train_df[train_df['y'] == 1]\ntrain_df = pd.concat([train_df, minority])"),
        (
            "x_train, x_test = train_test_split(x)\n"
            "x_train, y_train = SMOTE().fit_resample(x_train, y)"
        ),
        "df = pd.concat([df, other])\n" + SPLIT,
        "df = pd.concat([df, extra], axis=1)\n" + SPLIT,
    ),
    "test among training": (
        "val_mask = f(a)\ntest_mask = f(b)\ntrain_mask = ~(val_mask | test_mask)",
        "is_val = f(a)\nis_train = ~is_val",
        "val_mask = f(a)\ntest_mask = f(b)\ntrain_mask = ~val_mask\ntrain_mask &= ~test_mask",
    ),
    "drawn again": (
        "order = rng.permutation(n)\ntrain_idx, val_idx = order[100:], order[:100]",
        "train_idx = rng.permutation(n)[:100]\nval_idx = rng.permutation(m)[:100]",
        (
            "a = np.random.default_rng(0).permutation(n)[9:]\n"
            "val_idx = np.random.default_rng(0).permutation(n)[:9]"
        ),
    ),
    "shared rows": (
        PARTS,
        "x_train, y_train = data[:, :-1], data[:, -1]",
        "HISTORY = 9\ntrain, valid = z[:t1], z[t1 - HISTORY : t2]",
        "x_train, y_val = x[:800], y[:800]",
        "train, val = x[200:], x[:200]",
    ),
    "windows at random": (
        WINDOWS.format(" * L", " * L") + "a, b = random_split(Windows(series), [80, 20])",
        WINDOWS.format("", "") + "a, b = Windows(s[:n]), Windows(s[n:])",
        (
            "windows = [s[i : i + 24] for i in range(0, len(s) - 24, 24)]\n"
            "tr, va = train_test_split(windows)"
        ),
        WINDOWS.format("", "")
        + ("data = Windows(s)\ntr, va = train_test_split(data, shuffle=False)"),
    ),
    "groups at random": (
        (
            "slide_ids = np.load('s.npy')\nslides = np.unique(slide_ids)\n"
            "order = np.random.permutation(len(slides))"
        ),
        "user = df['user_id']\nx = emb(user)\na, b = train_test_split(df)",
        "source = torch.load('x.pt')\nmodel(source)\norder = torch.randperm(len(x))",
    ),
    "series at random": (
        LAGS + "x_train, x_test = train_test_split(df, shuffle=False)",
        "df['lag'] = df['x'].shift(1)\na, b = train_test_split(df)",
        "# forecast of a time series\na, b = train_test_split(x)",
    ),
    "held-out edges": (
        LINKS + "adj = normalised_adjacency(train_pos, n)\nz = model(x, adj)\nmodel.eval()",
        LINKS + "known = pair_keys(edges, n)\nadj = norm(train_pos)\nz = model(x, adj)",
        "adj = normalised_adjacency(edges, n)\nmodel.train()\nz = model(x, adj)",
    ),
    "all nodes": (
        NODES.format("loss = F.cross_entropy(model(x, adj)[train], y[train])"),
        NODES.format("loss = F.cross_entropy(model(x, adj), y.masked_fill(~train, -100))"),
        NODES.format("out = model(x, adj)[train]\nloss = F.cross_entropy(out, y[train])"),
    ),
    "chosen on test": (
        "val_acc = f(a)\ntest_acc = f(b)\nif val_acc > best:\n    torch.save(m.state_dict(), p)",
        "test_acc = f(b)\nif test_acc > best_acc:\n    torch.save(m.state_dict(), p)",
        "val_acc = f(a)\nif test_acc > best_test:\n    best_test = test_acc",
    ),
    "held-out of training": (
        "x_test = scaler.transform(x_test)",
        "val_loader = DataLoader(train_set, sampler=val_sampler)",
        "x_val = torch.tensor(x_train[val_idx])",
        "val_set = TensorDataset(x_val, y_val)",
    ),
    "own statistics": (
        "def encode(x, mu, sd):\n    return (x - mu) / sd\na = encode(x_train)\nb = encode(x_test)",
        "def norm(x):\n    return (x - x.mean(1)) / x.std(1)\na = norm(x_train)\nb = norm(x_test)",
        "def encode(x):\n    return (x - x.mean(0)) / x.std(0)\na = encode(x_train)",
    ),
    "refitted": (
        "a = StandardScaler()\nx_train = a.fit_transform(x_train)\nx_test = a.transform(x_test)",
        (
            "sx, sy = StandardScaler(), StandardScaler()\nx_train = sx.fit_transform(x_train)\n"
            "y_train = sy.fit_transform(y_train)"
        ),
        "c = {v: i for i, v in enumerate(sorted(set(train_labels)))}",
    ),
    "unpacked otherwise": (
        "x_train, x_test, y_train, y_test = train_test_split(x, y)",
        "train, test = train_test_split(x)",
        "a, b, c, d = train_test_split(x, y)",
    ),
    "split apart": (
        (
            "x_train, x_test = train_test_split(x, random_state=0)\n"
            "y_train, y_test = train_test_split(y, random_state=0)"
        ),
        (
            "x_train, x_test = train_test_split(x, shuffle=False)\n"
            "y_train, y_test = train_test_split(y, shuffle=False)"
        ),
        "train, test = train_test_split(x)",
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_mistakes_are_found(kind: str, text: str) -> None:
    assert kind in {pattern.kind for pattern in read(text)}, text


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in HEALTHY.items() for text in texts]
)
def test_what_is_meant_so_is_not(kind: str, text: str) -> None:
    assert kind not in {pattern.kind for pattern in read(text)}, text
