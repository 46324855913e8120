"""Views, metric learning, distillation and anomaly scores in sources, and right twins."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def function(body: str, arguments: str = "a, b, c") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(a, b, c)\n"


def pairs(body: str, names: str = "(v1, v2), _") -> str:
    """A loop over pairs."""
    return f"for {names} in loader:\n{indent(dedent(body), '    ')}\n    loss.backward()\n"


def views(body: str, name: str = "TwoViews") -> str:
    """A class that makes two views, for a contrastive loss."""
    return f"class {name}:\n    def __call__(self, x):\n{indent(dedent(body), ' ' * 8)}\n"


def xent(labels: str, mask: str = "sim.fill_diagonal_(-9)") -> str:
    """A contrastive loss of two halves."""
    return function(f"z = torch.cat([a, b])\nn = len(a)\nsim = z @ z.t() / 0.1\n{mask}\n"
                    f"labels = {labels}\nreturn F.cross_entropy(sim, labels)")  # fmt: skip


def branches(loss: str, maker: str = "z1, z2 = net(x1), net(x2)") -> str:
    """Two branches that predict each other."""
    return (
        "def d(p, z):\n    return -F.cosine_similarity(p, z, dim=1).mean()\n"
        f"for x1, x2 in loader:\n    {maker}\n    p1, p2 = head(z1), head(z2)\n"
        f"    loss = {loss}\n    loss.backward()\n"
    )


def divergence(one: str, other: str, options: str = "reduction='batchmean'") -> str:
    """A divergence of a student from a teacher."""
    return function(f"return F.kl_div({one}, {other}, {options})", "s, t, labels")


def distilled(mode: str, between: str = "", start: str = "") -> str:
    """A student that learns from a teacher."""
    return (
        f"{start}optimizer = SGD(student.parameters())\nfor epoch in range(3):\n    {mode}\n"
        "    for x in loader:\n        with torch.no_grad():\n            t = teacher(x)\n"
        f"        {between or 'pass'}\n        loss = compare(student(x), t)\n"
        "        loss.backward()\n"
    )


def ranked(scores: str, order: str, right: str) -> str:
    """A ranking of all rows for each of them."""
    return function(f"sim = {scores}\norder = {order}\nhits = {right}\nreturn hits.float().mean()",
                    "emb, ids, k")  # fmt: skip


def scored(threshold: str) -> str:
    """A threshold that is applied to test scores."""
    return f"threshold = {threshold}\nalarms = test_score > threshold\n"


PASSES = (
    "def evaluate(loader):\n    a = torch.cat([f(x) for x, _ in loader])\n"
    "    b = torch.cat([g(y) for _, y in loader])\n    return {}\n"
    "loader = DataLoader(data, 8{})\nevaluate(loader)\n"
)
TEACHER = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.drop = nn.Dropout(0.1)\nteacher = Net().to(device)\n"
    "teacher.load_state_dict(torch.load('t.pt'))\n{}"
)
SOFT, LOGS = "F.softmax({} / 4, dim=1)", "F.log_softmax({} / 4, dim=1)"
DENOISING = "for clean in loader:\n    noisy = {}\n    loss = F.mse_loss(model({}), {})\n"
"    loss.backward()\n"
SCORES = (
    "def anomaly_score(model, x):\n    return ((model(x) - x) ** 2).mean({})\n"
    "scores = anomaly_score(model, x)\nprint(roc_auc_score(labels, scores))\n"
)
SCALED = (
    "class Clip(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.log_scale = nn.Parameter(torch.zeros(1))\nmodel = Clip()\n"
    "def loss(a, b, scale):\n    logits = {}\n    return F.cross_entropy(logits, y)\n"
    "loss(a, b, model.log_scale.exp())\n"
)

FOUND = {
    "same view": (
        pairs("z1, z2 = model(v1), model(v1)\nloss = nt_xent(z1, z2)"),
        pairs("z1 = model(v1)\nz2 = model(v1)\nloss = nt_xent(z1, z2)"),
        pairs("v1, v2 = v1.to(device), v2.to(device)\nloss = nt_xent(model(v1), model(v1))"),
        pairs("loss = hinge(net(anchor), net(anchor), net(negative))",
              "anchor, positive, negative"),
    ),
    "repeated view": (
        views("view = self.transform(x)\nreturn view, view"),
        views("x = self.base(x)\nreturn [x, x]").replace("x = self.base(x)", "v = self.base(x)")
        .replace("[x, x]", "[v, v]"),
        ("criterion = nt_xent\nclass PairData(Dataset):\n    def __getitem__(self, i):\n"
        "        image = self.transform(self.images[i])\n        return (image, image), 0\n"),
    ),
    "own positives": (
        xent("torch.arange(2 * n)"),
        xent("torch.cat([torch.arange(0, n), torch.arange(n, 2 * n)]).to(z.device)"),
        xent("torch.cat((torch.arange(n), torch.arange(n, 2 * n)), dim=0)"),
    ),
    "unmasked self": (
        xent("torch.cat([torch.arange(n, 2 * n), torch.arange(n)])", "pass"),
        xent("(torch.arange(2 * n) + n) % (2 * n)", "pass"),
        xent("torch.arange(2 * n).roll(n)", "pass").replace("z @ z.t()", "torch.mm(z, z.T)"),
    ),
    "own branch": (
        branches("d(p1, z1.detach()) + d(p2, z2.detach())"),
        branches("(d(p1, z1) + d(p2, z2)) / 2"),
        branches("0.5 * d(p1, z1) + 0.5 * d(p2, z2)", "z1 = net(x1)\n    z2 = net(x2)"),
    ),
    "unstopped branch": (
        branches("d(p1, z2) + d(p2, z1)"),
        branches("0.5 * d(p1, z2) + 0.5 * d(p2, z1)", "z1 = net(x1)\n    z2 = net(x2)"),
        branches("(d(p2, z1) + d(p1, z2)) / 2"),
    ),
    "repeated anchor": (
        "loss = F.triplet_margin_loss(a, a, n)\n",
        "criterion = nn.TripletMarginLoss(margin=1.0)\nloss = criterion(net(a), net(p), net(p))\n",
        "loss = triplet_loss(anchor, positive, positive, margin=0.2)\n",
    ),
    "noisy target": (
        DENOISING.format("clean + 0.1 * torch.randn_like(clean)", "noisy", "noisy"),
        DENOISING.format("(clean + torch.randn_like(clean)).clamp(0, 1)", "noisy", "noisy"),
        DENOISING.format("clean * torch.bernoulli(keep)", "noisy", "noisy"),
    ),
    "same direction": (
        function("return (F.cross_entropy(a, b) + F.cross_entropy(a, b)) / 2"),
        function("one = F.cross_entropy(a, c)\nother = F.cross_entropy(a, c)\n"
                 "return 0.5 * one + 0.5 * other"),
        function("y = torch.arange(9)\nreturn F.cross_entropy(a, y) + F.cross_entropy(a, y.t())"),
    ),
    "shuffled passes": (
        PASSES.format("a @ b.t()", ", shuffle=True"),
        PASSES.format("recall(a, b)", ", shuffle=True"),
        PASSES.format("(a == b).float().mean()", ", shuffle=True, drop_last=True"),
    ),
    "divided scale": (SCALED.format("a @ b.t() / scale"),),
    "plain input of divergence": (
        divergence(SOFT.format("s"), SOFT.format("t")),
        divergence("s_logits / 4", SOFT.format("t")),
        "kl = nn.KLDivLoss(reduction='batchmean')\nloss = kl(torch.softmax(s, 1), t.softmax(1))\n",
        function("p = F.softmax(a, dim=-1)\nreturn F.kl_div(p, F.log_softmax(b, dim=-1))"),
    ),
    "target of divergence": (
        divergence(LOGS.format("s"), LOGS.format("t")),
        divergence(LOGS.format("s"), SOFT.format("t"), "log_target=True"),
        "kl = nn.KLDivLoss()\nloss = kl(s.log_softmax(1), t.log_softmax(1))\n",
    ),
    "reversed teacher": (
        function("return F.kl_div(teacher_logits.log_softmax(1), student_logits.softmax(1))",
                 "student_logits, teacher_logits, labels"),
        function("p = F.softmax(student_out, 1)\nq = F.log_softmax(teacher_out, 1)\n"
                 "return F.kl_div(q, p, reduction='sum')", "student_out, teacher_out, y"),
        function("return F.kl_div(torch.log(teacher_probs), F.softmax(student_scores, 1))",
                 "student_scores, teacher_probs, labels"),
    ),
    "training teacher": (
        distilled("teacher.train()"),
        distilled("student.train(); teacher.train(True)"),
        distilled("pass", "teacher.train()"),
    ),
    "unprepared teacher": (
        TEACHER.format(distilled("pass")),
        TEACHER.format("with torch.no_grad():\n    y = teacher(x)\n"),
        TEACHER.format("teacher.requires_grad_(False)\n").replace("Dropout(0.1)", "BatchNorm1d(4)"),
    ),
    "subtracted margin": (
        "loss = F.relu(d_pos - d_neg - margin).mean()\n",
        "loss = torch.clamp(neg_sim - pos_sim - 0.2, min=0).mean()\n",
        "loss = (d_ap - d_an - self.margin).clamp(min=0).mean()\n",
        "loss = F.relu(dist_pos - (dist_neg + margin)).mean()\n",
    ),
    "self match": (
        ranked("emb @ emb.t()", "sim.argsort(1, descending=True)", "ids[order] == ids[:, None]"),
        ranked("torch.cdist(emb, emb)", "sim.argmin(dim=1)", "ids[order] == ids"),
        ranked("emb @ emb.T", "sim.topk(5, dim=1).indices", "ids[order] == ids.unsqueeze(1)"),
    ),
    "threshold of test": (
        scored("np.quantile(test_score, 0.99)"),
        scored("np.percentile(test_scores, 95)"),
        scored("test_score.mean() + 3 * test_score.std()"),
        scored("torch.quantile(score(model, x_test), 0.99).item()"),
    ),
    "score of features": (SCORES.format("dim=0"), SCORES.format("0"), SCORES.format("axis=0")),
    "batch normalised": (
        "net.eval()\nz = F.normalize(net(x), dim=0)\nsim = z @ z.t()\n",
        "net.eval()\nz = net(x)\nz = z / z.norm(dim=0, keepdim=True)\n"
        "".replace("z = z /", "u = z /"),
        ("class Net(nn.Module):\n    def forward(self, x):\n        h = self.body(x).mean(1)\n"
        "        return F.normalize(self.proj(h), dim=0)\n"),
    ),
}  # fmt: skip
SILENT = (
    pairs("z1, z2 = model(v1), model(v2)\nloss = nt_xent(z1, z2)"),
    pairs("z1, z2 = model(v1), model(v1)\nloss = nt_xent(z1, z2)", "v1, label"),  # dropout alone
    pairs("z1, z2 = model(torch.cat([v1, v2])).chunk(2)\nloss = nt_xent(z1, z2)"),
    views("return self.transform(x), self.transform(x)"),
    ("class Images(Dataset):\n    def __getitem__(self, i):\n"
     "        x = self.transform(self.x[i])\n"
    "        return x, x\n"),  # an autoencoder
    xent("torch.cat([torch.arange(n, 2 * n), torch.arange(n)])"),
    xent("(torch.arange(2 * n) + n) % (2 * n)"),
    xent("torch.cat([torch.arange(n, 2 * n), torch.arange(n)])",
         "sim = sim - 1e9 * torch.eye(2 * n)"),
    function("sim = a @ b.t()\nreturn F.cross_entropy(sim, torch.arange(len(a)))"),
    branches("d(p1, z2.detach()) + d(p2, z1.detach())"),
    ("for a, b in loader:\n    fake_b, fake_a = g(a), h(b)\n"
    "    loss = F.mse_loss(fake_b, b) + F.mse_loss(fake_a, a)\n    loss.backward()\n"),
    ("for x1, x2 in loader:\n    y1, y2 = net(x1), net(x2)\n"
    "    loss = F.mse_loss(y1, x1) + F.mse_loss(y2, x2)\n    loss.backward()\n"),  # autoencoder
    "loss = F.triplet_margin_loss(a, p, n)\n",
    "loss = triplet_loss(embeddings, labels, margin)\n",
    DENOISING.format("clean + 0.1 * torch.randn_like(clean)", "noisy", "clean"),
    DENOISING.format("clean", "clean", "clean"),
    function("return (F.cross_entropy(a, b) + F.cross_entropy(a.t(), b)) / 2"),
    function("return F.cross_entropy(a, b) + F.cross_entropy(a, c)"),
    function("x = net(a)\none = F.mse_loss(x, b)\nx = net(a)\nreturn one + F.mse_loss(x, b)"),
    PASSES.format("a @ b.t()", ""),
    PASSES.format("a @ b.t()", ", shuffle=False"),
    SCALED.format("a @ b.t() * scale"),
    divergence(LOGS.format("s"), SOFT.format("t")),
    divergence(LOGS.format("s"), LOGS.format("t"), "reduction='batchmean', log_target=True"),
    divergence("(F.softmax(s, 1) + 1e-8).log()", SOFT.format("t")),
    divergence("s", "t"),
    function("return F.kl_div(student_logits.log_softmax(1), teacher_logits.softmax(1))",
             "student_logits, teacher_logits, labels"),
    distilled("student.train(); teacher.eval()"),
    distilled("teacher.train()", start="opt = SGD(teacher.parameters())\n"),
    distilled("teacher.train()", "update_ema(teacher, student)"),
    TEACHER.format("teacher.eval()\n"),
    TEACHER.format("def prepare(m):\n    m.eval()\nprepare(teacher)\n"),
    "loss = F.relu(d_pos - d_neg + margin).mean()\n",
    "loss = F.relu(margin - (d_neg - d_pos)).mean()\n",
    "loss = torch.clamp(neg_sim - pos_sim + 0.2, min=0).mean()\n",
    ranked("emb @ emb.t()", "sim.argsort(dim=1, descending=True)[:, 1:]",
           "ids[order] == ids[:, None]"),
    ranked("(emb @ emb.t()).fill_diagonal_(-2)", "sim.argmax(dim=1)", "ids[order] == ids"),
    ranked("emb @ bank.t()", "sim.argmax(dim=1)", "bank_ids[order] == ids"),
    scored("np.quantile(valid_score, 0.99)"),
    scored("valid_score.mean() + 3 * valid_score.std()"),
    scored("0.5"),
    SCORES.format("dim=1"),
    "net.eval()\nz = F.normalize(net(x), dim=1)\n",
    "net.eval()\nz = F.normalize(net(x), dim=0)\nc = z.t() @ z\n",
)  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in FOUND.items() for t in all_])
def test_found(kind: str, text: str) -> None:
    assert [pattern.kind for pattern in read(text)] == [kind]


@pytest.mark.parametrize("text", SILENT)
def test_silent(text: str) -> None:
    assert read(text) == []
