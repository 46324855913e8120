"""Which classic mistakes are found in unfamiliar trainings: `python -m bench.mutations [BASE ...]`.

Each healthy script of a blind round is run with one mistake made for it: a few lines before the
script change what PyTorch does (gradients are never cleared, the optimizer holds copies, ...). The
table has a row for each script and a column for each mistake, so that a rule that works in one kind
of training alone shows at once. Mistakes that do nothing to a script are not judged: compare the
last lines that the script prints, with and without it.
"""

import argparse
import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from bench.blind import Judgement, measure
from zoo.recording import folder_of
from zoo.rounds import BLIND
from zoo.specimens import Specimen

_UNSTABLE = (
    *("huge-updates", "unsuitable-learning-rate", "unusable-learning-rate", "diverging-loss"),
    *("exploding-gradients", "exploding-weights", "oscillating-loss", "nonfinite-loss"),
    *("dead-units", "saturated-units", "oversized-steps", "missing-warmup", "collapsed-outputs"),
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """Lines that go before a script, and the rules that name what they do."""

    lines: str
    causes: tuple[str, ...]


def _with_groups(body: str) -> str:
    """Lines that change what an optimizer is given: `groups` and `defaults`."""
    return f"""
import torch as _torch
_init = _torch.optim.Optimizer.__init__
def _changed(self, params, defaults):
    params = list(params) if not isinstance(params, _torch.Tensor) else [params]
    if params and isinstance(params[0], tuple):
        params = [tensor for _, tensor in params]
    groups = params if params and isinstance(params[0], dict) else [{{"params": params}}]
    for group in groups:
        held = group["params"]
        group["params"] = [held] if isinstance(held, _torch.Tensor) else list(held)
{body}
    _init(self, groups, defaults)
_torch.optim.Optimizer.__init__ = _changed
"""


MISTAKES: Mapping[str, Mistake] = MappingProxyType(
    {
        "uncleared": Mistake(
            """
import torch as _torch
_torch.optim.Optimizer.zero_grad = lambda self, set_to_none=True: None
_torch.nn.Module.zero_grad = lambda self, set_to_none=True: None
""",
            ("uncleared-gradients",),
        ),
        "lr-x100": Mistake(
            _with_groups("""
    defaults["lr"] = defaults["lr"] * 100
    for group in groups:
        if "lr" in group:
            group["lr"] = group["lr"] * 100
"""),
            _UNSTABLE,
        ),
        "lr-tiny": Mistake(
            _with_groups("""
    defaults["lr"] = defaults["lr"] * 1e-4
    for group in groups:
        if "lr" in group:
            group["lr"] = group["lr"] * 1e-4
"""),
            ("tiny-updates", "unsuitable-learning-rate", "unusable-learning-rate"),
        ),
        "stale": Mistake(
            _with_groups("""
    for group in groups:
        group["params"] = [p.detach().clone().requires_grad_() for p in group["params"]]
"""),
            ("parameters-outside-model", "parameters-outside-optimizer", "step-without-backward"),
        ),
        "half-held": Mistake(
            _with_groups("""
    for group in groups:
        group["params"] = group["params"][len(group["params"]) // 2:]
"""),
            ("parameters-outside-optimizer",),
        ),
        "decay": Mistake(
            _with_groups("""
    defaults["weight_decay"] = 1.0 if "Adam" in type(self).__name__ else 0.5
    for group in groups:
        group.pop("weight_decay", None)
"""),
            ("collapsed-weights", "decayed-norms-and-biases"),
        ),
        "zero-init": Mistake(
            _with_groups("""
    with _torch.no_grad():
        for group in groups:
            for p in group["params"]:
                if p.dim() > 1:
                    p.zero_()
"""),
            ("identical-rows", "all-zero-gradients", "dead-gradients", "collapsed-weights"),
        ),
        "huge-init": Mistake(
            _with_groups("""
    with _torch.no_grad():
        for group in groups:
            for p in group["params"]:
                if p.dim() > 1:
                    p.mul_(20)
"""),
            (
                *("large-initial-loss", "exploding-gradients", "growing-activations"),
                *("saturated-units", "heavy-tailed-weights", "dead-units", "tiny-updates"),
                "overflow-headroom",
            ),
        ),
        "ascent": Mistake(
            """
import torch as _torch
_backward = _torch.Tensor.backward
_torch.Tensor.backward = lambda self, *args, **kwargs: _backward(-self, *args, **kwargs)
""",
            ("diverging-loss", "unbounded-loss", "exploding-weights", "misreported-loss"),
        ),
        "epsilon": Mistake(
            _with_groups("""
    if "eps" in defaults:
        defaults["eps"] = 1.0
"""),
            ("large-epsilon",),
        ),
        "rushed": Mistake(
            """
import torch as _torch
from torch.optim import Optimizer as _Optimizer
_init = _Optimizer.__init__
def _scheduled(self, *args, **kwargs):
    _init(self, *args, **kwargs)
    schedule = _torch.optim.lr_scheduler.ExponentialLR(self, 0.8)
    self.register_step_post_hook(lambda *_: schedule.step())
_Optimizer.__init__ = _scheduled
""",
            ("rushed-schedule", "decayed-learning-rate"),
        ),
        "cut": Mistake(
            _with_groups("""
    import gc
    held = {id(p) for group in groups for p in group["params"]}
    layers = [m for m in gc.get_objects() if isinstance(m, _torch.nn.Module)
              and any(id(p) in held for p in m.parameters(recurse=False))]
    layers = [m for m in layers if isinstance(m, (_torch.nn.Linear, _torch.nn.Conv2d,
              _torch.nn.Conv1d, _torch.nn.Embedding))]
    if layers:
        layers[0].register_forward_hook(lambda m, i, o: o.detach())
"""),
            ("unreached-parameters", "severed-gradients"),
        ),
        "no-step": Mistake(
            """
import torch as _torch
import torch.optim as _optim
def _nothing(self, closure=None):
    if closure is not None:
        with _torch.enable_grad():
            return closure()
for _name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
    _torch.optim.__dict__[_name].step = _nothing
""",
            ("unapplied-gradients", "motionless-weights", "step-without-backward"),
        ),
        "dead": Mistake(
            _with_groups("""
    import gc
    held = {id(p) for group in groups for p in group["params"]}
    with _torch.no_grad():
        for m in gc.get_objects():
            if isinstance(m, (_torch.nn.Linear, _torch.nn.Conv2d, _torch.nn.Conv1d)):
                if m.bias is not None and id(m.bias) in held:
                    m.bias.fill_(-10.0)
"""),
            ("dead-units", "saturated-units", "large-initial-loss", "all-zero-gradients"),
        ),
        "mispaired": Mistake(
            """
import torch as _torch
import torch.nn.functional as _F
def _mispaired(function):
    def call(input, target, *args, **kwargs):
        if _torch.is_grad_enabled() and target.dim() and len(target) > 1:
            target = target[_torch.randperm(len(target))]
        return function(input, target, *args, **kwargs)
    return call
for _name in ("cross_entropy", "mse_loss", "binary_cross_entropy_with_logits", "l1_loss",
              "smooth_l1_loss", "nll_loss", "binary_cross_entropy"):
    setattr(_F, _name, _mispaired(getattr(_F, _name)))
""",
            (
                *("unrelated-labels", "independent-labels", "mispaired-batches"),
                *("misaligned-labels", "misordered-targets", "loss-at-constant-predictor"),
                "unexplained-failure",
            ),
        ),
    }
)


def script_with(base: Path, mistake: Mistake) -> tuple[str, str]:
    """The edit that puts the lines of a mistake before the first statement of a script."""
    text = base.read_text()
    first = next(
        node
        for node in ast.parse(text).body
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )
    lines = text.splitlines(keepends=True)
    before, after = "".join(lines[: first.lineno - 1]), "".join(lines[first.lineno - 1 :])
    return text, f"{before}{mistake.lines}{after}"


def main() -> int:
    """Run every chosen script with every chosen mistake and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bases", nargs="*", metavar="ROUND/BASE", default=[], help="r4/base_kge")
    parser.add_argument("--mistakes", nargs="+", choices=tuple(MISTAKES), default=tuple(MISTAKES))
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    bases = args.bases or sorted(
        f"{path.parent.name}/{path.stem}" for path in BLIND.glob("*/base_*.py")
    )
    specimens = [
        Specimen(
            f"mutated-{base.replace('/', '-')}-{name}",
            f"blind/{base}",
            (script_with(BLIND / f"{base}.py", MISTAKES[name]),),
            name,
            cause=MISTAKES[name].causes[0],
            accepts=MISTAKES[name].causes[1:],
        )
        for base in bases
        for name in args.mistakes
    ]
    judgements = {
        each.specimen.name: each for each in measure(specimens, "run", workers=args.workers)
    }
    print(
        "| script | mistake | verdict | found | outcome | prints last |\n|---|---|---|---|---|---|"
    )
    for specimen in specimens:
        print(_row(judgements[specimen.name]))
    for name in args.mistakes:
        of_it = [each for each in judgements.values() if each.specimen.why == name]
        right = sum(each.verdict == "right" for each in of_it)
        print(f"{name}: {right} of {len(of_it)} right", file=sys.stderr)
    return 0


def _row(judgement: Judgement) -> str:
    specimen = judgement.specimen
    output = folder_of(specimen, 0) / "output.txt"
    lines = [line for line in output.read_text().splitlines() if line] if output.exists() else []
    printed = [line for line in lines if not line.startswith("holter")]
    last = printed[-1][:100] if printed else ""
    found = ", ".join(judgement.findings) or "nothing"
    return (
        f"| {specimen.workload.removeprefix('blind/')} | {specimen.why} | {judgement.verdict} |"
        f" {found} | {judgement.outcome[:120]} | {last} |"
    )


if __name__ == "__main__":
    sys.exit(main())
