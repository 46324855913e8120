"""A script sees the same interpreter under `holter run` as under Python, and finds torch whole."""

from pathlib import Path

import pytest
from launched import HOLTER, environment, holter_run, python

LOOK = """\
'''What I am for.'''
import os, sys, pickle
from pathlib import Path
{relative}
class Thing:
    pass

def names():
    return sorted(each for each in globals() if each != "__cached__")

if __name__ == "__main__":
    print(names())
    print(sys.argv, __file__, sys.path[0], os.getcwd(), Path(__file__).resolve())
    print(__name__, __doc__, __package__, __spec__ and __spec__.name, type(__loader__).__name__)
    print(sys.modules["__main__"].__dict__ is globals(), type(__builtins__))
    print(pickle.dumps(Thing()), isinstance(pickle.loads(pickle.dumps(Thing())), Thing))
    print([each for each in sys.modules if each.split(".")[0] == "torch"])
    print(names.__code__.co_filename, __import__("inspect").getsource(Thing))
    print(sys.flags, sorted(os.environ), sys.stdin.read())
"""
ARGUMENTS = ("-m", "--out", "x", "--lr=1", "--", "-h", "a b", "")


@pytest.mark.parametrize("script", ["look.py", "./look.py", "sub/look.py", "sub/../sub/look.py"])
def test_a_script_sees_what_python_shows_it(script: str, here: Path) -> None:
    (here / "sub").mkdir()
    (here / script).write_text(LOOK.format(relative="import beside"))
    (here / script).with_name("beside.py").write_text("")
    plain = python(script, *ARGUMENTS, cwd=here)
    assert plain.code == 0, plain.err
    watched = holter_run(script, *ARGUMENTS, cwd=here)
    assert watched.out.decode().splitlines() == plain.out.decode().splitlines()
    assert watched.code == 0


def test_a_script_given_whole_sees_it_too(here: Path, tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text(LOOK.format(relative=""))
    plain = python(script, cwd=here)
    assert holter_run(script, cwd=here).out == plain.out


def test_a_folder_is_run_by_its_main(here: Path) -> None:
    (here / "app").mkdir()
    (here / "app" / "beside.py").write_text("")
    (here / "app" / "__main__.py").write_text("import beside, sys\nprint(sys.argv, sys.path[0])\n")
    plain = python("app", "x", cwd=here)
    assert plain.code == 0
    watched = holter_run("app", "x", cwd=here)
    assert (watched.code, watched.out) == (0, plain.out)


@pytest.mark.parametrize("module", ["package.train", "package", "package.inner"])
def test_a_module_is_run_as_with_python_m(module: str, here: Path) -> None:
    package = here / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("print('package imported')\n")
    (package / "inner" / "__init__.py").write_text("")
    (package / "beside.py").write_text("VALUE = 7\n")
    look = LOOK.format(relative="from .beside import VALUE")
    (package / "train.py").write_text(look)
    (package / "__main__.py").write_text(look)
    (package / "inner" / "__main__.py").write_text(look.replace(".beside", "..beside"))
    plain = python("-m", module, *ARGUMENTS, cwd=here)
    assert plain.code == 0, plain.err
    watched = holter_run("-m", module, *ARGUMENTS, cwd=here)
    assert watched.out.decode().splitlines() == plain.out.decode().splitlines()
    assert watched.code == 0


def test_what_a_script_sets_before_torch_counts(here: Path) -> None:
    (here / "script.py").write_text(
        "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\n"
        "print(torch.get_num_threads())\n"
    )
    env = environment(OMP_NUM_THREADS="2")
    watched = python(*HOLTER, "run", "--no-check", "script.py", cwd=here, env=env)
    assert watched.out == b"1\n", watched.err


TRACES = """\
import atexit, sys, types

def traces():
    "Functions and classes of torch, and hooks in it, that are holter's."
    import holter
    ours = str(holter.__path__[0])
    found = set()
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "torch":
            for owner in [module, *(e for e in vars(module).values() if type in type(e).__mro__)]:
                for key, value in list(vars(owner).items()):
                    if type(value) in (staticmethod, classmethod):
                        value = value.__func__
                    if type(value) is not types.FunctionType:
                        continue
                    if value.__code__.co_filename.startswith(ours):
                        found.add(f"{owner.__name__}.{key}")
    from torch.nn.modules import module as hooks
    from torch.optim import optimizer as steps
    for where in (hooks, steps):
        for name, value in vars(where).items():
            if name.startswith("_global_") and name.endswith("hooks") and value:
                found.add(name)
    for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
        if getattr(opt, name):
            found.add(name)
    if any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in net.modules()):
        found.add("module hooks")
    if any(p._backward_hooks or p._post_accumulate_grad_hooks for p in net.parameters()):
        found.add("tensor hooks")
    found.update(type(e).__name__ for e in sys.meta_path if "holter" in type(e).__module__)
    return sorted(found)

atexit.register(lambda: print("after", traces()))

import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    nn.functional.mse_loss(net(torch.ones(4, 3)), torch.ones(4, 1)).backward()
    opt.step()
print("during", len(traces()))
"""


def test_torch_is_whole_again_at_exit(here: Path) -> None:
    (here / "script.py").write_text(TRACES)
    ended = holter_run("--out", "run", "--no-check", "script.py", cwd=here)
    assert ended.code == 0, ended.err
    during, after = ended.out.decode().splitlines()
    assert int(during.split()[1]) >= 10  # so that there was something to take away
    assert after == "after []"
