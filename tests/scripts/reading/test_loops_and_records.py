"""Training loops, schedules, optimizers and what a script keeps of a run, in sources."""

import pytest

from holter.scripts.reading import read

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Dropout(0.2), nn.Linear(9, 2))
"""
STEP = "optimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"
EVALUATE = """
def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        total = sum(loss_of(model(x), y).item() for x, y in loader)
    {}
    return total
"""


def indent(text: str, by: int = 4) -> str:
    return "".join(" " * by + line + "\n" for line in text.strip("\n").splitlines())


def loop(body: str, head: str = "for n, (x, y) in enumerate(loader):") -> str:
    return f"{head}\n{indent(body)}"


def epochs(*parts: str, before: str = "") -> str:
    return before + "for epoch in range(epochs):\n" + "".join(map(indent, parts))


def trained(before: str, *parts: str) -> str:
    """A script with a model and an optimizer that trains in epochs."""
    made = "model = Net()\noptimizer = torch.optim.Adam(model.parameters())\n"
    return NET + made + epochs(loop("loss = f(model(x), y)\n" + STEP), *parts, before=before)


EVERY = "if (n + 1) % accum == 0:\n    optimizer.step()\n"
BEST = "val_loss = run(val)\nif val_loss < best:\n    {}\n    torch.save(net.state_dict(), path)"
START = 'best = float("inf")\n'
PATIENCE = """
val_loss = run(val)
if val_loss < best:
    best = val_loss
    {}
else:
    {}
    if bad >= patience:
        break
"""
KEPT = "if loss < best:\n    best = loss\n    kept_state = {}"
LOAD = "model.load_state_dict(kept_state)\n"
SCHEDULE = "model = Net()\noptimizer = SGD(model.parameters())\nscheduler = {}\n"
BY_STEP = loop(STEP + "scheduler.step()")
FREEZE = "for p in model.parameters():\n    p.requires_grad = False\n"
HEAD = "model.fc = nn.Linear(9, 2)\n"
OPT = "optimizer = torch.optim.Adam(model.parameters())\n"
EMA = "for a, b in zip(ema.parameters(), model.parameters()):\n    {}\n"
SAVE = "torch.save({'model': m.state_dict(), 'opt': o.state_dict(), 'epoch': n, 'best': best}, p)\n"
RESUME = "ck = torch.load(p)\nm.load_state_dict(ck['model'])\nstart = ck['epoch']\n{}"
COMPARED = "if loss < best:\n    best = loss\n"
GAN = "gen, critic = Gen(), Critic()\nopt_g = torch.optim.Adam(gen.parameters())\n"
GAN = "class Gen(nn.Module): ...\nclass Critic(nn.Module): ...\n" + GAN
SAMPLER = """
class Batches(Sampler):
    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random(seed)
    def __iter__(self):
        rng = {}
        yield from rng.sample(self.rows, 9)
"""

FOUND = {
    "erased accumulation": (
        loop("optimizer.zero_grad()\n(f(x) / accum).backward()\n" + EVERY),
        loop("loss = f(x) / accum\nloss.backward()\n" + EVERY + "optimizer.zero_grad()"),
        loop("model.zero_grad()\nloss = f(x)\nloss.backward()\n" + EVERY),
    ),
    "cleared before the step": (
        loop("loss.backward()\noptimizer.zero_grad()\noptimizer.step()"),
        "def step(loss):\n    loss.backward()\n    opt.zero_grad()\n    opt.step()\nstep(f(x))\n",
        loop("loss.backward()\nself.opt.zero_grad()\nclip(model)\nself.opt.step()"),
    ),
    "early clipping": (
        loop("clip_grad_norm_(model.parameters(), 1.0)\nloss.backward()\noptimizer.step()"),
        loop(
            "nn.utils.clip_grad_value_(ps, 1.0)\nscaler.scale(loss).backward()\n"
            "scaler.unscale_(opt)\nscaler.step(opt)"
        ),
        (
            "def step(loss):\n    clip_grad_norm_(ps, 1.0)\n"
            "    loss.backward()\n    opt.step()\nstep(9)\n"
        ),
    ),
    "late clipping": (
        loop("loss.backward()\noptimizer.step()\nclip_grad_norm_(model.parameters(), 1.0)"),
        loop("loss.backward()\nopt.step()\ntorch.nn.utils.clip_grad_value_(ps, 1.0)"),
        loop("self.loss.backward()\nself.optim.step()\nclip_grad_norm_(self.net.parameters(), 5)"),
    ),
    "clipped with the scale": (
        loop("scaler.scale(loss).backward()\nclip_grad_norm_(ps, 1.0)\nscaler.step(opt)"),
        loop("self.scaler.scale(f(x)).backward()\nclip_grad_norm_(ps, 1.0)\nself.scaler.step(opt)"),
        loop(
            "scaler.scale(loss).backward()\nif clip:\n    clip_grad_norm_(ps, 1.0)\n"
            "scaler.step(opt)"
        ),
    ),
    "training mode lost": (
        EVALUATE.format("print(total)") + trained("model.train()\n", "evaluate(model, val)"),
        trained("", "model.eval()\nwith torch.no_grad():\n    print(f(model(v), w))"),
        EVALUATE.format("pass") + trained("", "if epoch % 5 == 0:\n    evaluate(model, val)"),
    ),
    "evaluation mode undone": (
        loop("model.backbone.eval()\nmodel.train()\nloss = f(model(x))\n" + STEP),
        "frozen = [model.bn1, model.layer1]\n"
        + loop("for m in frozen:\n    m.eval()\nmodel.train()\n" + STEP),
        loop("self.net.encoder.eval()\nself.net.train()\n" + STEP),
    ),
    "training teacher": (
        loop(
            "teacher.train()\nwith torch.no_grad():\n    t = teacher(x)\nloss = f(s(x), t)\n" + STEP
        ),
        loop(
            "teacher_model.train()\nwith torch.inference_mode():\n    t = teacher_model(x)\n" + STEP
        ),
        loop("self.teacher.train()\nwith torch.no_grad():\n    t = self.teacher(x)\n" + STEP),
    ),
    "dropout in every mode": tuple(
        NET + f"    def forward(self, x):\n        return {call}\nnet = Net()\nnet.eval()\n"
        for call in (
            "F.dropout(x, 0.5)",
            "nn.functional.dropout(self.fc(x), p=0.1)",
            "self.fc(F.dropout(x, self.p))",
        )
    ),
    "best never updated": (
        epochs(STEP, BEST.format("best_epoch = epoch"), before=START),
        epochs(STEP, BEST.format("pass"), before="best = np.inf\n"),
        epochs(
            STEP, "acc = run(val)\nif acc > best_acc:\n    save(net)\n", before="best_acc = 0\n"
        ),
    ),
    "counter never reset": (
        epochs(STEP, PATIENCE.format("save(net)", "bad += 1"), before="best, bad = 9.0, 0\n"),
        epochs(STEP, PATIENCE.format("pass", "bad += 1"), before="bad = 0\nbest = 9.0\n"),
        epochs(
            STEP,
            PATIENCE.format("kept = 1", "bad += 1").replace(
                "val_loss < best", "val_loss < best - delta"
            ),
            before="bad = 0\nbest = 9.0\n",
        ),
    ),
    "exchanged counter": (
        epochs(STEP, PATIENCE.format("bad += 1", "bad = 0"), before="best, bad = 9.0, 0\n"),
        epochs(STEP, PATIENCE.format("bad += 1", "bad = 0\n    print(bad)"), before="bad = 0\n"),
        epochs(PATIENCE.format("bad += 1", "bad = 0"), before="best, bad = 9.0, 0\n"),
    ),
    "weights by reference": (
        trained("", KEPT.format("model.state_dict()")) + LOAD,
        trained("", KEPT.format("{k: v.detach() for k, v in model.state_dict().items()}")) + LOAD,
        trained("", KEPT.format("dict(model.state_dict())")) + LOAD,
        trained("", KEPT.format("model.state_dict().copy()")) + LOAD,
        trained("", "if loss < best:\n    best = loss\n    best_model = model")
        + "use(best_model)\n",
    ),
    "total never reset": (
        loop("total += loss.item()\nif n % 50 == 0:\n    print(total / 50)"),
        loop("running += loss.item()\nif n % every == every - 1:\n    mean = running / every"),
        epochs(
            "for x in loader:\n    total += f(x).item()\nprint(total / len(loader))",
            before="total = 0.0\n",
        ),
    ),
    "shared default": (
        (
            "def run(m, seen_rows=[]):\n"
            "    seen_rows.append(m(x).item())\n    return sum(seen_rows)\n"
        ).replace("seen_rows", "losses")
        + "run(a)\nrun(b)\n",
        "def run(m, sums=[0, 0]):\n    sums[0] += 1\n    return sums\nrun(a)\nrun(b)\n",
        "def run(m, out={}):\n    out['loss'] = out.get('loss', 0) + m\n    return out\n"
        + loop("run(x)"),
    ),
    "shadowed variable": (
        "for i in range(9):\n    for i in range(3):\n        f(i)\n    print(i)\n",
        "for x in a:\n    for y, x in b:\n        f(y)\n    g(x)\n",
        (
            "for epoch in range(9):\n    with f():\n"
            "        for epoch in g:\n            h()\n    k(epoch)\n"
        ),
    ),
    "range of batches": (
        loop("f(i)", "for i in range(0, len(x) // size, size):"),
        loop("f(i)", "for i in trange(0, n // args.batch, args.batch):"),
        "starts = list(range(0, len(perm) // bs, bs))\n",
    ),
    "schedule of epochs": (
        SCHEDULE.format("CosineAnnealingLR(optimizer, T_max=epochs)") + epochs(BY_STEP),
        SCHEDULE.format("OneCycleLR(optimizer, 0.1, total_steps=epochs)") + epochs(BY_STEP),
        "total = epochs\n"
        + SCHEDULE.format("LambdaLR(optimizer, lambda s: 1 - s / total)")
        + epochs(BY_STEP),
    ),
    "schedule of samples": (
        SCHEDULE.format("CosineAnnealingLR(optimizer, epochs * len(train_set))") + epochs(BY_STEP),
        "total = len(loader.dataset) * epochs\n"
        + SCHEDULE.format("OneCycleLR(optimizer, 0.1, total_steps=total)")
        + epochs(BY_STEP),
        SCHEDULE.format("get_linear_schedule_with_warmup(optimizer, 9, len(train_data) * epochs)")
        + epochs(BY_STEP),
    ),
    "schedule by micro-batch": tuple(
        SCHEDULE.format(f"CosineAnnealingLR(optimizer, {total})")
        + epochs(loop("loss.backward()\n" + EVERY + "    optimizer.zero_grad()\nscheduler.step()"))
        for total in (
            "len(loader) // accum * epochs",
            "epochs * (len(loader) // accum)",
            "math.ceil(epochs * len(loader) / accum)",
        )
    ),
    "schedule of one group": tuple(
        f"groups = [{{'params': a, 'weight_decay': 0.1}}, {{'params': b}}]\n"
        f"optimizer = {made}\n" + loop("optimizer.param_groups[0]['lr'] = rate(n)\n" + STEP)
        for made in (
            "AdamW(groups, lr=1e-3)",
            "torch.optim.SGD(groups, lr=0.1)",
            "Adam([{'params': a}, {'params': b, 'weight_decay': 0}], lr=1e-3)",
        )
    ),
    "reversed plateau": (
        "plan = ReduceLROnPlateau(optimizer)\nplan.step(val_acc)\n",
        "plan = ReduceLROnPlateau(optimizer, 'min')\nplan.step(metrics['f1'])\n",
        "plan = lr_scheduler.ReduceLROnPlateau(optimizer, mode='max')\nplan.step(val_loss)\n",
    ),
    "copied optimizer": (
        GAN + "opt_c = torch.optim.Adam(gen.parameters())\n",
        GAN + "opt_c = torch.optim.RMSprop(gen.parameters(), lr=1e-3)\n",
        GAN.replace("Gen(), Critic()", "Gen().to(d), Critic().to(d)")
        + "opt_c = Adam(gen.parameters())\n",
    ),
    "model without optimizer": tuple(
        f"optimizer = {made}\n"
        + loop(
            "enc.train()\nloss.backward()\nclip_grad_norm_(list("
            "enc.parameters()) + list(dec.parameters()), 1)\n"
            "optimizer.step()"
        )
        for made in (
            "Adam(dec.parameters())",
            "torch.optim.SGD(dec.parameters(), lr=1)",
            "AdamW([{'params': dec.parameters()}])",
        )
    ),
    "part after the optimizer": (
        "model = resnet18()\n" + OPT + HEAD,
        "model = resnet18()\n" + OPT + "model.head = nn.Sequential(nn.Linear(9, 2))\n",
        (
            "def build():\n    model = get()\n    opt = SGD(model.parameters(), lr=1)\n"
            "    model.fc = nn.Linear(9, 2)\n    return model, opt\nbuild()\n"
        ),
    ),
    "frozen new part": (
        "model = resnet18()\n" + HEAD + FREEZE + OPT,
        HEAD + "model.requires_grad_(False)\nfor p in model.layer4.parameters():\n"
        "    p.requires_grad = True\n",
        "class LoRA(nn.Module):\n    def __init__(self):\n        self.A = nn.Parameter(x)\n"
        "for m in model.modules():\n    setattr(m, 'fc', LoRA(m.fc))\n"
        + FREEZE
        + "for n, p in model.named_parameters():\n    if 'classifier' in n:\n"
        "        p.requires_grad = True\n",
    ),
    "exchanged average": (
        EMA.format("a.mul_(1 - 0.999).add_(b, alpha=0.999)"),
        EMA.format("a.data = 0.001 * a.data + 0.999 * b.data"),
        EMA.format("a.lerp_(b, 0.999)"),
        EMA.format("a.copy_((1 - decay) * a + decay * b)"),
    ),
    "average before its start": (
        loop("if epoch < swa_start:\n    swa.update_parameters(model)"),
        loop("if swa_start > epoch:\n    swa_model.update_parameters(model)"),
        loop("if step <= args.swa_start:\n    f()\n    avg.update_parameters(model)"),
    ),
    "lost on resume": (
        RESUME.format("o.load_state_dict(ck['opt'])\n") + COMPARED + SAVE,
        RESUME.format("best = ck['best']\n") + COMPARED + SAVE,
        "state = {'net': m.state_dict(), 'opt': o.state_dict(), 'best': best, 'epoch': 1}\n"
        "torch.save(state, p)\nck = torch.load(p)\nn = ck['epoch']\no.load_state_dict(ck['opt'])\n"
        + COMPARED,
    ),
    "seed in every epoch": (
        epochs("torch.manual_seed(0)\nperm = torch.randperm(9)", loop(STEP)),
        "def check():\n    torch.manual_seed(7)\n    return f(torch.randn(9))\n"
        + epochs(loop(STEP), "check()"),
        epochs("np.random.seed(1)\nrows = np.random.permutation(9)", loop(STEP)),
    ),
    "same batches in every epoch": (
        SAMPLER.format("random.Random(self.seed)"),
        SAMPLER.format("random.Random(0)"),
        SAMPLER.format("np.random.default_rng(self.seed)"),
    ),
}
SILENT = (
    loop("(f(x) / accum).backward()\n" + EVERY + "    optimizer.zero_grad()"),
    loop("if n % accum == 0:\n    optimizer.zero_grad()\nf(x).backward()\n" + EVERY),
    loop(
        "opt_d.zero_grad()\nd.backward()\nopt_d.step()\nif n % 5 == 0:\n    opt_g.zero_grad()\n"
        "    g.backward()\n    opt_g.step()"
    ),
    loop("loss.backward()\noptimizer.step()\noptimizer.zero_grad()"),
    loop("loss.backward()\nclip_grad_norm_(ps, 1.0)\noptimizer.step()"),
    loop("loss.backward()\noptimizer.step()\nnorm = clip_grad_norm_(ps, 1e9)"),
    loop(
        "scaler.scale(f(x)).backward()\nscaler.unscale_(opt)\nclip_grad_norm_(ps, 1)\n"
        "scaler.step(opt)"
    ),
    EVALUATE.format("model.train()") + trained("", "evaluate(model, val)"),
    EVALUATE.format("pass") + trained("", "evaluate(model, val)", "model.train()"),
    EVALUATE.format("pass") + trained("", "evaluate(ema, val)"),
    (EVALUATE.format("pass") + trained("", "evaluate(model, val)")).replace(
        "nn.Dropout(0.2), ", ""
    ),
    EVALUATE.format("pass") + trained("", "if epoch == epochs - 1:\n    evaluate(model, val)"),
    loop("model.train()\nmodel.backbone.eval()\n" + STEP),
    loop("model.backbone.eval()\nf(model)\nmodel.train()\n" + STEP),
    loop("teacher.train()\nloss = f(teacher(x))\n" + STEP),
    NET + "    def forward(self, x):\n        return F.dropout(x, 0.5, self.training)\n"
    "net = Net()\nnet.eval()\n",
    epochs(STEP, BEST.format("best = val_loss"), before=START),
    epochs(STEP, BEST.format("best = min(best, val_loss)"), before=START),
    epochs(
        STEP, "acc = run(val)\nif acc > best_known:\n    save(net)\n", before="best_known = 0.93\n"
    ),
    epochs(STEP, PATIENCE.format("bad = 0", "bad += 1"), before="best, bad = 9.0, 0\n"),
    epochs("bad = 0", loop(PATIENCE.format("pass", "bad += 1")), before="best = 9.0\n"),
    trained("", KEPT.format("copy.deepcopy(model.state_dict())")) + LOAD,
    trained("", KEPT.format("{k: v.clone() for k, v in model.state_dict().items()}")) + LOAD,
    trained("", "if loss < best:\n    best = loss\n    torch.save(model.state_dict(), p)"),
    loop("total += loss.item()\nif n % 50 == 0:\n    print(total / 50)\n    total = 0.0"),
    loop("total += loss.item()\nif n % 50 == 0:\n    print(total / (n + 1))"),
    epochs("total = 0.0\nfor x in loader:\n    total += f(x).item()\nprint(total / len(loader))"),
    (
        "def run(m, out=None):\n    out = out or []\n"
        "    out.append(m)\n    return out\nrun(a)\nrun(b)\n"
    ),
    "def run(m, cache={}):\n    cache[m] = 1\n    return cache\nrun(a)\nrun(b)\n",
    "def run(m, sizes=[1, 2]):\n    return [m(n) for n in sizes]\nrun(a)\nrun(b)\n",
    "for i in range(9):\n    for j in range(3):\n        f(j)\n    print(i)\n",
    "for x in a:\n    for x in b:\n        f(x)\n",
    loop("f(i)", "for i in range(0, len(x), size):"),
    loop("f(i)", "for i in range(0, len(x) // size * size, size):"),
    SCHEDULE.format("CosineAnnealingLR(optimizer, T_max=epochs)")
    + epochs(loop(STEP), "scheduler.step()"),
    SCHEDULE.format("CosineAnnealingLR(optimizer, epochs * len(loader))") + epochs(BY_STEP),
    SCHEDULE.format("OneCycleLR(optimizer, 0.1, total_steps=epochs * len(train_set) // size)")
    + epochs(BY_STEP),
    SCHEDULE.format("CosineAnnealingLR(optimizer, epochs * len(loader))")
    + epochs(loop("loss.backward()\n" + EVERY + "    optimizer.zero_grad()\nscheduler.step()")),
    "optimizer = SGD([{'params': a, 'lr': 0.1}, {'params': b, 'lr': 1}])\n"
    + loop("optimizer.param_groups[0]['lr'] = rate(n)\n" + STEP),
    "optimizer = SGD(ps, lr=0.1)\n" + loop("optimizer.param_groups[0]['lr'] = rate(n)\n" + STEP),
    "plan = ReduceLROnPlateau(optimizer)\nplan.step(1 - val_acc)\n",
    "plan = ReduceLROnPlateau(optimizer, 'max')\nplan.step(val_acc)\n",
    GAN + "opt_c = torch.optim.Adam(critic.parameters())\n",
    "model = resnet18()\n" + HEAD + OPT,
    "model = resnet18()\n" + OPT + HEAD + OPT,
    FREEZE + HEAD + OPT,
    HEAD + FREEZE + "model.fc.requires_grad_(True)\n",
    HEAD + FREEZE + "for n, p in model.named_parameters():\n    if n.startswith('fc'):\n"
    "        p.requires_grad = True\n",
    EMA.format("a.mul_(0.999).add_(b, alpha=1 - 0.999)"),
    EMA.format("a.lerp_(b, 1 - decay)"),
    EMA.format("a.data.copy_(tau * b.data + (1.0 - tau) * a.data)"),
    loop("if epoch >= swa_start:\n    swa.update_parameters(model)"),
    RESUME.format("o.load_state_dict(ck['opt'])\nbest = ck['best']\n") + COMPARED + SAVE,
    SAVE + "m.load_state_dict(torch.load(p)['model'])\n" + COMPARED,
    epochs("torch.manual_seed(epoch)\nperm = torch.randperm(9)", loop(STEP)),
    epochs("with torch.random.fork_rng():\n    torch.manual_seed(0)", loop(STEP)),
    SAMPLER.format("random.Random(self.seed + self.epoch)"),
    SAMPLER.format("self.rng"),
)


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in FOUND.items() for t in all_])
def test_found(kind: str, text: str) -> None:
    assert {pattern.kind for pattern in read(text)} == {kind}


@pytest.mark.parametrize("text", SILENT)
def test_silent(text: str) -> None:
    assert read(text) == []
