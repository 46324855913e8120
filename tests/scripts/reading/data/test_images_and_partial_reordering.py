"""Readers of images, partial reordering, flips and others, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

CODES = "N_CLASSES = 3\n"
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
FOUND = {
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
}
HEALTHY = {
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
