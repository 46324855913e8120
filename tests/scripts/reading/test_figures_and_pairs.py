"""Readers of metrics, class weights, flips and what belongs together, and their twins."""

import pytest

from holter.scripts.reading import read

CODES = "N_CLASSES = 3\n"
KNN = (
    "def evaluate(emb, ids):\n    sim = emb @ emb.t()\n"
    "{}    order = sim.argsort(dim=1, descending=True)\n"
    "    return (ids[order] == ids[:, None]).float(){}\n"
    "evaluate(e, i)"
)
CINDEX = (
    "def concordance(risk, time, event):\n"
    "    ok = (time.unsqueeze(1) < time.unsqueeze(0)) & (event.unsqueeze(1) == 1)\n"
    "    diff = risk.unsqueeze(1) - risk.unsqueeze(0)\n"
    "    good = (diff {} 0).float()\n    return good[ok].mean()\n"
    "concordance(r, t, e)"
)
MIX = (
    "def mix(x, y, lam):\n    perm = torch.randperm(len(x))\n"
    "    z = lam * x + (1 - lam) * x[perm]\n    return z, y, {}\n"
    "mix(x, y, 0.5)"
)
COX = (
    "def cox_loss(risk, time, event):\n"
    "    order = torch.argsort(time, descending=True)\n    {}\n"
    "    log_cum = torch.logcumsumexp(risk, 0)\n"
    "    return -((risk - log_cum) * event).sum()\ncox_loss(r, t, e)"
)
LINKS = (
    "logits = torch.cat([score(pos), score(neg)])\n"
    "target = torch.cat([{}])\nloss = bce(logits, target)"
)
VIEWS = (
    "# simclr\nfor (v1, v2), _ in simclr_loader:\n"
    "    v1, v2 = v1.to(d), v2.to(d)\n    z1, z2 = {}\n"
)
XENT = (
    "def nt_xent(z, n):\n    sim = z @ z.t()\n"
    "    sim.fill_diagonal_(float('-inf'))\n    pos = {}\n"
    "    return F.cross_entropy(sim, pos)\nnt_xent(z, 9)"
)
FLIP = (
    "class D:\n    def __getitem__(self, i):\n"
    "        img, mask = self.x[i], self.m[i]\n"
    "        if random.random() < 0.5:\n            {}\n"
    "        mask = torch.from_numpy(mask)\n"
    "        return img, mask\n"
)
POINTS = (
    "NAMES = ['left_eye', 'right_eye']\nclass D:\n"
    "    def __getitem__(self, i):\n"
    "        img, pts = self.x[i], self.p[i].copy()\n"
    "        if torch.rand(1) < 0.5:\n"
    "            img = img[:, ::-1]\n"
    "            pts[:, 0] = W - 1 - pts[:, 0]\n"
    "{}        return img, pts\n"
)
ONCE = (
    "class D(Dataset):\n    def __init__(self, x, transform):\n"
    "        {}\n    def __getitem__(self, i):\n        return {}\n"
    "tf = Compose([RandomCrop(3)])\nd = D(x, tf)\n"
)
EVALUATE = (
    "def evaluate(model, loader):\n    outs = []\n"
    "    for x, y in loader:\n        outs.append(model(x))\n"
    "    return f(torch.cat(outs), loader.dataset.labels)\n{}\n"
    "evaluate(model, val_loader)"
)
EDGES = (
    "def build_edges(ids, cites):\n"
    "    position = {{p: i for i, p in enumerate({})}}\n"
    "    return torch.tensor([[position[a], position[b]] for a, b in cites])\n"
    "{}\nbuild_edges(ids, cites)"
)
NEGATIVE = (
    "class D(Dataset):\n    def __init__(self, pairs, n):\n"
    "        {}\n    def __getitem__(self, i):\n        return {}\n"
)
SPREAD = "words = load()\nmean, std = x[train_mask].mean(0), x[train_mask].std(0)\n{}"
TASKS = "p = torch.exp(-self.log_var)\nloss = p[0] * a + p[1] * b {} self.log_var.sum()"
DICE = (
    "def dice_loss({0}, target):\n    {1}\n"
    "    inter = ({0} * target).sum()\n"
    "    return 1 - 2 * inter / ({0}.sum() + target.sum())\n"
    "loss = F.cross_entropy(out, y) + dice_loss(out, y)"
)
LOGS = (
    "log_y = np.log(df['price'])\nm, s = log_y.mean(), log_y.std()\n"
    "y = (log_y - m) / s\npred = torch.exp({})"
)
SURVIVAL = "def cox(risk, event):\n    return risk * event\ncox(r, event)\n"

FOUND = {
    "proportional weights": (
        (
            "counts = torch.bincount(y)\nw = counts / counts.sum()\n"
            "loss = nn.CrossEntropyLoss(weight=w)"
        ),
        "freq = np.bincount(y) / len(y)\nc = nn.CrossEntropyLoss(torch.tensor(freq).float())",
        (
            "counts = np.array([(y == c).sum() for c in range(3)])\n"
            "w = torch.tensor(3 * counts / counts.sum())\nl = F.cross_entropy(p, y, weight=w)"
        ),
        "counts = np.bincount(y)\nsampler = WeightedRandomSampler(counts[y], len(y))",
    ),
    "inverted pos weight": (
        "c = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(n_pos / n_neg))",
        (
            "pos = y.sum()\nneg = len(y) - pos\nw = torch.tensor([pos / neg])\n"
            "c = nn.BCEWithLogitsLoss(pos_weight=w)"
        ),
        "l = F.binary_cross_entropy_with_logits(p, y, pos_weight=(y == 1).sum() / (y == 0).sum())",
    ),
    "flipped alone": (
        FLIP.format("img = img[:, ::-1]"),
        FLIP.format("img = np.fliplr(img).copy()"),
        FLIP.format("img = torch.flip(img, [-1])"),
    ),
    "flipped classes": (
        (
            "CLASSES = ['disc', 'arrow_left', 'arrow_right']\n"
            "if rng.random() < 0.5:\n    img = img[:, ::-1]"
        ),
        "labels = ['turn-left', 'turn-right']\nt = RandomHorizontalFlip()",
        "class_names = ('hook_right', 'hook_left')\nx = x.flip(-1) if torch.rand(1) < 0.5 else x",
    ),
    "sides kept": (
        POINTS.format(""),
        POINTS.format("").replace("NAMES = ['left_eye', 'right_eye']", "FLIP_ORDER = [1, 0, 2]"),
        POINTS.format("").replace("pts[:, 0]", "pts[..., 0]"),
    ),
    "augmented once": (
        ONCE.format("self.x = [transform(a) for a in x]", "self.x[i]"),
        ONCE.format("self.items = [transform(a) for a in x]", "self.items[i], 0"),
        ONCE.format("self.t = transform\n        self.x = [self.t(a) for a in x]", "self.x[i]")
        .replace("self.t", "self.transform", 2)
        .replace("self.transform = transform", "self.transform = transform"),
    ),
    "union with overlap": (
        "union = conf.sum(0) + conf.sum(1)\niou = tp / union",
        "inter = (p * t).sum()\niou = inter / (p.sum() + t.sum())",
        "union = p.sum() + t.sum()\niou = (p & t).sum() / (union + 1e-6)",
    ),
    "dice without two": (
        "inter = (p * t).sum()\ndice = inter / (p.sum() + t.sum())",
        (
            "def dice(p, t):\n    inter = (p * t).sum()\n"
            "    return (inter + 1) / (p.sum() + t.sum() + 1)\ndice(a, b)"
        ),
        "dice = (p * t).sum() / (p.sum() + t.sum() + eps)",
    ),
    "exchanged ratio": (
        "precision = tp / (tp + fn)",
        "recall = tp / (tp + fp + 1e-8)",
        "r2 = 1 - ss_tot / ss_res",
    ),
    "shifted error": (
        "rmse = (sq / n) ** 0.5 * y_std + y_mean",
        "mae = (p - y).abs().mean()\nprint(mae * std + mean)",
        "print(rmse * self.y_std + self.y_mean)",
    ),
    "order as ranks": (
        "ranks = np.argsort(score) + 1\nauc = ranks[y == 1].sum()",
        "rank = scores.argsort()\npos = labels == 1\nmean = rank[pos].mean()",
        "ranks = torch.argsort(score).float()\ns = torch.sum(ranks[labels == 1])",
    ),
    "recall by cut": (
        "top = s.topk(k)\nrecall = hits / k",
        "order = s.argsort()\nrecall_at_k = hits.sum() / K",
        "recall += len_hits / top_k",
    ),
    "means by samples": (
        "for u in torch.arange(n).split(99):\n    r += hit(u).float().mean().item()\nprint(r / n)",
        (
            "for i in range(0, len(x), bs):\n"
            "    acc += (p == y).float().mean().item()\nacc = acc / len(x)"
        ),
        "n = len(t)\nfor u in torch.arange(n).split(9):\n    s += f(u).mean()\nprint(s / n)",
    ),
    "reversed concordance": (
        CINDEX.format("<"),
        CINDEX.format("<").replace(
            "unsqueeze(1) - risk.unsqueeze(0)", "unsqueeze(1) - risk.unsqueeze(0)"
        ),
        (
            "def c_index(risk, t, e):\n    for i in r:\n        for j in r:\n"
            "            if t[i] < t[j] and e[i]:\n"
            "                n += risk[i] < risk[j]\n    return n\n"
            "c_index(a, b, c)"
        ),
    ),
    "self match": (
        KNN.format("", ""),
        KNN.format("", ".mean()").replace("emb @ emb.t()", "emb @ emb.T"),
        KNN.format("", "").replace("emb @ emb.t()", "torch.cdist(emb, emb)") + "  # recall",
    ),
    "unscaled predictions": (
        LOGS.format("model(x)"),
        LOGS.format("model(x).squeeze(-1)"),
        LOGS.format("net(x)").replace("np.log(", "np.log1p(").replace("torch.exp(", "torch.expm1("),
    ),
    "tiny spread": (
        SPREAD.format("x = (x - mean) / (std + 1e-8)"),
        SPREAD.format("x = (x - mean) / std.clamp(min=1e-8)"),
        SPREAD.format("x = (x - mean) / (std + 1e-6)"),
    ),
    "inverted events": (
        SURVIVAL + "event = torch.tensor((df['died'] == 0).to_numpy())",
        SURVIVAL + "event = 1 - df['died'].values",
        SURVIVAL + "event = torch.tensor(df['censored'].values)",
    ),
    "overlap of logits": (
        DICE.format("logits", "target = target.float()"),
        DICE.format("pred", "pass"),
        "criterion = nn.BCEWithLogitsLoss()\n"
        + DICE.format("x", "pass").replace("F.cross_entropy", "criterion"),
    ),
    "own positives": (
        XENT.format("torch.arange(2 * n)"),
        XENT.format("torch.cat([torch.arange(n), torch.arange(n, 2 * n)])"),
        XENT.format("torch.arange(z.size(0)).to(z.device)"),
    ),
    "reversed regulariser": (
        TASKS.format("-"),
        TASKS.format("- 0.5 *"),
        (
            "loss = torch.exp(-log_vars[0]) * a - log_vars[0] + "
            "torch.exp(-log_vars[1]) * b - log_vars[1]"
        ),
    ),
    "targets reversed": (
        LINKS.format("torch.zeros(len(neg)), torch.ones(len(pos))"),
        LINKS.format("torch.zeros_like(a), torch.ones_like(b)"),
        (
            "s = torch.cat([neg_score, pos_score])\n"
            "t = torch.cat([torch.ones(9), torch.zeros(9)])\n"
            "loss = F.binary_cross_entropy_with_logits(s, t)"
        ),
    ),
    "labels of stored order": (
        EVALUATE.format("val_loader = DataLoader(val_set, 64, shuffle=True)"),
        EVALUATE.format(
            "val_loader = make(val_set)\ndef make(d):\n    return DataLoader(d, 9, shuffle=True)\n"
        ),
        EVALUATE.format("val_loader = DataLoader(v, batch_size=2, shuffle=True)").replace(
            "labels", "targets"
        ),
    ),
    "sorted ids": (
        EDGES.format("sorted(ids)", "ids, words, y, cites = load()"),
        EDGES.format("np.unique(ids)", "ids, x, y, cites = read()"),
        EDGES.format("sorted(ids)", "(ids, x, cites) = read()"),
    ),
    "mixed with another": (
        MIX.format("y[torch.randperm(len(y))]"),
        MIX.format("y[np.random.permutation(len(y))]"),
        MIX.format("y[torch.randperm(y.size(0))]").replace("lam * x +", "x * lam +"),
    ),
    "partly sorted": (
        COX.format("risk, time = risk[order], time[order]"),
        COX.format("risk = risk[order]\n    time = time[order]"),
        COX.format("risk, time = risk[order], time[order]").replace(
            "argsort(time, descending=True)", "argsort(-time)"
        ),
    ),
    "same view": (
        VIEWS.format("model(v1), model(v1)"),
        VIEWS.format("f(v2), f(v2)"),
    ),
    "repeated view": (
        (
            "class Two:  # simclr\n    def __call__(self, x):\n        view = self.transform(x)\n"
            "        return view, view\nsimclr = Two()"
        ),
        "# byol\ndef two_views(x):\n    v = augment(x)\n    return v, v\na, b = two_views(x)",
    ),
    "shared mask": (
        "self.mask_test = self.mask_train\nself.mask_test[u, i] = True\nf(self.mask_train)",
        "test_mask = seen_mask\ntest_mask[a] = 1\nprint(seen_mask)",
        "seen = known\nseen[u, i] = True\nevaluate(known)",
    ),
    "fixed negatives": (
        NEGATIVE.format("self.neg = torch.randint(n, (len(pairs),))", "self.neg[i]"),
        NEGATIVE.format("self.negatives = rng.integers(0, n, len(pairs))", "0, self.negatives[i]"),
        NEGATIVE.format("self.neg_items = np.random.choice(n, len(pairs))", "self.neg_items[i]"),
    ),
    "reshaped axes": (
        "x = torch.from_numpy(img.reshape(3, *img.shape[:2]))",
        "h, w, c = img.shape\nx = img.reshape(c, h, w)",
        "H, W, C = x.shape\ny = x.reshape((C, H, W))",
    ),
    "exchanged sizes": (
        "w, h = img.shape[:2]\nx = x / w",
        "width, height = images.shape[-2:]\nprint(width)",
        "w, h, c = img.shape\nbox[0] /= w",
    ),
    "scaled by other side": (
        "boxes[:, 0] = boxes[:, 0] / h\nboxes[:, 1] = boxes[:, 1] / w",
        "pts[..., 0] /= height\npts[..., 1] /= width",
        "boxes[:, [0, 2]] /= img_h\nboxes[:, [1, 3]] /= img_w",
    ),
    "divided twice": (
        "x = x / 255.0\nx = x / 255",
        "x = x.astype('f') / 255\nx = np.log1p(x)\nx = x / 255.0",
        "x = ToTensor()(img) / 255",
    ),
    "smoothed mask": (
        CODES + "m = F.interpolate(mask[None], size=9, mode='bilinear').long()",
        CODES + "mask = cv2.resize(mask, (9, 9))",
        CODES + "import torchvision.transforms.functional as TF\nmask = TF.resize(mask, [9, 9])",
        CODES + "mask = mask.resize((9, 9), Image.BILINEAR)",
    ),
    "gaps as targets": (
        "loss = F.mse_loss(p, torch.nan_to_num(y))",
        "t = torch.nan_to_num(y, nan=0.0)\nloss = nn.functional.l1_loss(p, t)",
        "loss = criterion(p, y.nan_to_num())",
    ),
    "undone otherwise": (
        "z = (y - mean) / std\np = (model(x) + mean) * std",
        "z = (y - self.mu) / self.sd\np = self.sd * (out + self.mu)",
        "y = (t - s['mean']) / s['std']\nq = (p + s['mean']) * s['std']",
    ),
    "another scaler": (
        "x_scaler.fit(x)\ny_scaler.fit(y)\np = x_scaler.inverse_transform(preds)",
        "scaler_x.fit(x)\nscaler_y.fit(y)\np = scaler_x.inverse_transform(y_pred.numpy())",
        (
            "self.x_scaler.fit(x)\nself.target_scaler.fit(y)\n"
            "p = self.x_scaler.inverse_transform(outputs)"
        ),
    ),
}

HEALTHY = {
    "proportional weights": (
        (
            "counts = torch.bincount(y)\nw = counts.sum() / (3 * counts)\n"
            "l = nn.CrossEntropyLoss(weight=w)"
        ),
        "freq = np.bincount(y) / len(y)\nl = nn.CrossEntropyLoss(torch.tensor(1 / freq))",
        "counts = np.bincount(y)\nw = 1.0 / counts\ns = WeightedRandomSampler(w[y], len(y))",
        (
            "counts = torch.bincount(y)\nw = 1 - counts / counts.sum()\n"
            "l = nn.CrossEntropyLoss(weight=w)"
        ),
        "counts = torch.bincount(y)\nw = counts.float() ** -0.5\nl = nn.CrossEntropyLoss(weight=w)",
    ),
    "inverted pos weight": (
        "c = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(n_neg / n_pos))",
        "c = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(n_pos / n_neg))\nl = c(model(x), 1 - y)",
        "c = nn.BCEWithLogitsLoss(pos_weight=(len(y) - y.sum()) / y.sum())",
    ),
    "flipped alone": (
        FLIP.format("img, mask = img[:, ::-1], mask[:, ::-1]"),
        FLIP.format("img = img[:, ::-1]\n            mask = mask[:, ::-1]"),
        FLIP.format("img = img + 1"),
    ),
    "flipped classes": (
        "CLASSES = ['cat', 'dog']\nif rng.random() < 0.5:\n    img = img[:, ::-1]",
        (
            "CLASSES = ['arrow_left', 'arrow_right']\nif rng.random() < 0.5:\n"
            "    img, label = img[:, ::-1], SWAP[label]"
        ),
        "sides = ['top_left', 'bottom']\nt = RandomHorizontalFlip()",
    ),
    "sides kept": (
        POINTS.format("            pts = pts[[1, 0]]\n"),
        POINTS.format("            pts = pts[SWAP]\n").replace("NAMES", "SWAP"),
        POINTS.format("").replace("'left_eye', 'right_eye'", "'nose', 'chin'"),
    ),
    "augmented once": (
        ONCE.format("self.x, self.transform = x, transform", "self.transform(self.x[i])"),
        ONCE.format("self.x = [transform(a) for a in x]", "self.x[i]").replace(
            "RandomCrop", "Resize"
        ),
        ONCE.format("self.x = [load(a) for a in x]", "self.x[i]"),
    ),
    "union with overlap": (
        "union = conf.sum(0) + conf.sum(1) - tp\niou = tp / union",
        "union = p.sum() + t.sum()\niou = inter / (union - inter)",
        "union = (p | t).sum()",
        "union = p.sum() + t.sum()\ndice = 2 * inter / union",
    ),
    "dice without two": (
        "inter = (p * t).sum()\ndice = 2 * inter / (p.sum() + t.sum())",
        "inter = 2 * (p * t).sum()\ndice = inter / (p.sum() + t.sum())",
        "dice = 2 * tp / (2 * tp + fp + fn)",
    ),
    "exchanged ratio": (
        "precision = tp / (tp + fp)",
        "recall = tp / (tp + fn)",
        "r2 = 1 - ss_res / ss_tot",
        "prec = tp / max(tp + fp, 1)",
    ),
    "shifted error": (
        "rmse = (sq / n) ** 0.5 * y_std",
        "pred = out * std + mean",
        "print(p.mean() * std + mean)",
    ),
    "order as ranks": (
        "ranks = np.argsort(np.argsort(score)) + 1\nauc = ranks[y == 1].sum()",
        (
            "order = np.argsort(score)\nranks = np.empty(9)\n"
            "ranks[order] = np.arange(9)\nranks[y == 1].sum()"
        ),
        "ranks = np.argsort(-score)\ntop = labels[ranks[:9]]",
        "order = scores.argsort()\nranks = order.argsort()\ns = ranks[pos].sum()",
    ),
    "recall by cut": (
        "precision = hits / k",
        "recall = hits / len(relevant)",
        "recall = hits / min(k, n)",
    ),
    "means by samples": (
        "for u in torch.arange(n).split(99):\n    r += hit(u).float().sum().item()\nprint(r / n)",
        "for x, y in loader:\n    r += f(x).mean().item()\nprint(r / len(loader))",
        "for i in range(n):\n    r += f(i).mean().item()\nprint(r / n)",
    ),
    "reversed concordance": (
        CINDEX.format(">"),
        CINDEX.format("<").replace(
            "diff = risk.unsqueeze(1)", "risk = -risk\n    diff = risk.unsqueeze(1)"
        ),
        CINDEX.format(">").replace(
            "(time.unsqueeze(1) < time.unsqueeze(0))", "(time.unsqueeze(1) < time.unsqueeze(0))"
        ),
    ),
    "self match": (
        KNN.format("    sim.fill_diagonal_(-2.0)\n", ""),
        KNN.format("", "[:, 1:]"),
        KNN.format("", "").replace("emb @ emb.t()", "emb @ gallery.t()"),
    ),
    "unscaled predictions": (
        LOGS.format("model(x) * s + m"),
        LOGS.format("model(x)") + "\nq = model(x) * s + m",
        "y = np.log(df['price'])\npred = torch.exp(model(x))",
    ),
    "tiny spread": (
        SPREAD.format("std[std < 0.05] = 1.0\nx = (x - mean) / (std + 1e-8)"),
        SPREAD.format("x = (x - mean) / (std + 0.1)"),
        "words = 1\nmean, std = x.mean(0), x.std(0)\nx = (x - mean) / (std + 1e-8)",
    ),
    "inverted events": (
        SURVIVAL + "event = torch.tensor(df['died'].to_numpy())",
        SURVIVAL + "event = 1 - df['censored'].values",
        SURVIVAL + "e = torch.tensor(1 - df['died'].values)\nloss = cox(r, 1 - e)",
    ),
    "overlap of logits": (
        DICE.format("logits", "logits = logits.sigmoid()"),
        DICE.format("probs", "pass").replace("dice_loss(out", "dice_loss(out.softmax(1)"),
        DICE.format("pred", "pass").replace("F.cross_entropy(out, y)", "bce(p, y)"),
    ),
    "own positives": (
        XENT.format("(torch.arange(2 * n) + n) % (2 * n)"),
        XENT.format("torch.cat([torch.arange(n, 2 * n), torch.arange(n)])"),
        "sim = a @ b.t()\nloss = F.cross_entropy(sim, torch.arange(9))",
    ),
    "reversed regulariser": (
        TASKS.format("+"),
        "log_p = -0.5 * (x - mu) ** 2 * torch.exp(-log_var) - 0.5 * log_var",
        "kl = -0.5 * (1 + log_var - mu.pow(2) - log_var.exp()).sum()",
    ),
    "targets reversed": (
        LINKS.format("torch.ones(len(pos)), torch.zeros(len(neg))"),
        LINKS.format("torch.ones_like(a), torch.zeros_like(b)"),
        "s = torch.cat([real, fake])\nt = torch.cat([torch.zeros(9), torch.ones(9)])",
    ),
    "labels of stored order": (
        EVALUATE.format("val_loader = DataLoader(val_set, 64)"),
        EVALUATE.format("val_loader = DataLoader(val_set, 64, shuffle=False)"),
        EVALUATE.format("val_loader = DataLoader(v, 9, shuffle=True)").replace(
            "outs.append(model(x))", "n += 1"
        ),
    ),
    "sorted ids": (
        EDGES.format("ids", "ids, words, y, cites = load()"),
        EDGES.format("sorted(ids)", "ids = set(a)"),
        EDGES.format("sorted(ids)", "ids, x, cites = load()\nx = x[np.argsort(ids)]"),
    ),
    "mixed with another": (
        MIX.format("y[perm]"),
        "p = torch.randperm(9)\nz = lam * x + (1 - lam) * x[p]\nw = lam * y + (1 - lam) * y[p]",
        "control = y[torch.randperm(len(y))]",
    ),
    "partly sorted": (
        COX.format("risk, time, event = risk[order], time[order], event[order]"),
        COX.format("risk, time = risk[order], time[order]\n    event = event[order]"),
        COX.format("risk, time = risk[order], time[order]").replace("* event)", "* event[order])"),
    ),
    "same view": (
        VIEWS.format("model(v1), model(v2)"),
        (
            "class Two:  # simclr\n    def __call__(self, x):\n"
            "        return self.transform(x), self.transform(x)\nsimclr = Two()"
        ),
        VIEWS.format("model(v1), model(v1)") + "    z3 = model(v2)",
    ),
    "shared mask": (
        "self.mask_test = self.mask_train.clone()\nself.mask_test[u, i] = True\nf(self.mask_train)",
        "test_mask = seen_mask\nprint(test_mask, seen_mask)",
        "self.mask = mask\nself.mask[0] = True",
    ),
    "fixed negatives": (
        NEGATIVE.format("self.pairs = pairs", "torch.randint(9, (1,))"),
        NEGATIVE.format("self.neg = pairs[:, 2]", "self.neg[i]"),
        NEGATIVE.format("self.neg = rng.integers(0, n, 9)", "self.neg[i]").replace(
            "class D", "class ValData"
        ),
    ),
    "reshaped axes": (
        "x = img.transpose(2, 0, 1)",
        "c, h, w = img.shape\nx = img.reshape(c, h, w)",
        "x = raw.reshape(3, 32, 32)",
    ),
    "exchanged sizes": (
        "h, w = img.shape[:2]",
        "w, h = picture.size",
        "w, h = img.T.shape[:2]\nprint(w)",
        "w, h = img.shape[:2]\nn = w * h",
    ),
    "scaled by other side": (
        "boxes[:, 0] /= w\nboxes[:, 1] /= h",
        "boxes[:, 0] /= h",
        "x[:, 0] = x[:, 0] / h\nx[:, 1] = x[:, 1] / w",
    ),
    "divided twice": (
        "x = x / 255.0",
        "x = load() / 255\nx = load() / 255",
        "x = ToTensor()(img)",
    ),
    "smoothed mask": (
        CODES + "m = F.interpolate(mask[None], size=9, mode='nearest').long()",
        CODES + "mask = cv2.resize(mask, (9, 9), interpolation=cv2.INTER_NEAREST)",
        CODES + "image = cv2.resize(image, (9, 9))",
        CODES + "m = F.interpolate(mask_logits, size=9, mode='bilinear')",
    ),
    "gaps as targets": (
        "known = ~torch.isnan(y)\nloss = F.mse_loss(p[known], y[known])",
        "loss = (F.mse_loss(p, torch.nan_to_num(y), reduction='none') * known).sum()",
        "x = torch.nan_to_num(x)\nloss = F.mse_loss(model(x), y)",
    ),
    "undone otherwise": (
        "z = (y - mean) / std\np = model(x) * std + mean",
        "p = (model(x) + bias) * scale",
        "z = (y - lo) / (hi - lo)\np = p * (hi - lo) + lo",
    ),
    "another scaler": (
        "x_scaler.fit(x)\ny_scaler.fit(y)\np = y_scaler.inverse_transform(preds)",
        "x_scaler.fit(x)\np = x_scaler.inverse_transform(preds)",
        "x_scaler.fit(x)\ny_scaler.fit(y)\nx = x_scaler.inverse_transform(x)",
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
