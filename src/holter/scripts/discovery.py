"""Discovery: find the models and optimizers of a script, and have them watched."""

import gc
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from holter.watching.watch import Watch


# Seconds that it may take to begin to watch optimizers, and more as the script goes on: an inner
# loop makes one for each task. A search through all objects takes about 0.05 s.
_FREE, _SHARE = 2.0, 0.05
_WITHOUT = 3  # steps in a row without a new gradient, after which an optimizer is no longer used
_SEARCHES = 3  # for the model that is trained instead, for each optimizer

_recordings: "weakref.WeakSet[Watch]" = weakref.WeakSet()


def recording() -> "Watch | None":
    """Return the watch that records whatever this process trains, as under `holter run`."""
    return next((watch for watch in _recordings if watch.is_open), None)


class Discovery:
    """Find the optimizers of a script and the models they train, and watch them."""

    def __init__(self, watch: "Watch") -> None:
        _recordings.add(watch)
        self._watch = watch
        self._waiting: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._unsettled: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._left_out: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._began, self._spent, self._has_told = time.perf_counter(), 0.0, False
        self._held: dict[int, weakref.ref[Tensor]] = {}  # by an optimizer, now or earlier
        self._found: list[weakref.ref[nn.Module]] = []  # models, when an optimizer was last found
        self._gradients: weakref.WeakKeyDictionary[Optimizer, _Gradients] = (
            weakref.WeakKeyDictionary()
        )
        watch.send(self)

    def optimizer_made(self, optimizer: "Optimizer") -> None:
        """Remember an optimizer until the first backward."""
        self._waiting.add(optimizer)
        self._watch.release()

    def catch_up(self) -> None:
        """Remember the optimizers that exist already."""
        from torch.optim import Optimizer

        for each in gc.get_objects():
            if issubclass(type(each), Optimizer) and "param_groups" in vars(each):
                self.optimizer_made(each)

    def before_backward(self) -> None:
        """Watch all optimizers created so far, and the models that hold their parameters."""
        if not self._waiting:
            return
        optimizers = list(self._waiting)
        self._waiting.clear()
        self._held |= {
            id(each): weakref.ref(each)
            for optimizer in optimizers
            for group in optimizer.param_groups
            for each in group["params"]
        }
        if self._is_too_late_for(optimizers):
            return
        began = time.perf_counter()
        self._watch_all(optimizers)
        self._spent += time.perf_counter() - began

    def _is_too_late_for(self, optimizers: "list[Optimizer]") -> bool:
        """Whether so many optimizers were made that watching these too would slow the script."""
        if self._spent <= _FREE + _SHARE * (time.perf_counter() - self._began):
            return False
        if not self._has_told:
            self._has_told = True
            self._watch.note(
                "The script creates optimizers faster than holter can start to record them, for"
                " example one per task of an inner loop; some are not recorded."
            )
        self._left_out.update(optimizers)
        return True

    def _watch_all(self, optimizers: "list[Optimizer]") -> None:
        """Watch these optimizers, and the models that hold their parameters."""
        self._unsettled.update(optimizers)
        models = live_models()
        self._found = [weakref.ref(each) for each in models]
        self._watch.add(_holding(_parameters_of(optimizers), models), optimizers)

    def before_step(self, optimizer: "Optimizer") -> None:
        """Watch a late optimizer; at its first step, check that its parameters are trained."""
        if optimizer in self._left_out:
            return
        if self._watch.roster.subject_of(optimizer) is None:
            self.optimizer_made(optimizer)
        self.before_backward()
        if optimizer in self._unsettled:
            self._unsettled.discard(optimizer)
            self._look_for_the_trained_model(optimizer)
            self._look_for_forgotten_models()
        else:
            self._look_for_a_replacement(optimizer)

    def after_unseen_backward(self, known: set[int], leaves: "Callable[[], list[Tensor]]") -> None:
        """Watch models that have gradients, or tensors outside of models, without an optimizer."""
        if self._waiting or self._has_told:  # optimizers that are not recorded update the weights
            return
        models = live_models()
        reached = {id(p) for m in models for p in m.parameters() if p.grad is not None} - known
        trained = _holding(reached, models)
        families = []
        for module in trained:
            family = [
                (name, p)
                for name, p in module.named_parameters()
                if p.requires_grad and id(p) not in known
            ]
            if family:
                families.append(family)
                known |= {id(p) for _, p in family}
        if families:
            self._watch.follow(trained, families, by=_updater(trained[0]))
        elif not known:
            loose = [leaf for leaf in leaves() if leaf.grad is not None]
            if loose:
                self._watch.follow([], [_named(loose)], by="The script")

    def _models(self) -> "list[nn.Module]":
        """Return the models that lived at the backward before: those that can have gradients."""
        return [module for found in self._found if (module := found()) is not None]

    def _look_for_the_trained_model(self, optimizer: "Optimizer") -> None:
        """Watch the models that do get gradients, if this optimizer's parameters do not.

        The model was then re-created or replaced after the optimizer was built.
        """
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        inside = {id(p) for m in self._watch.roster.models for p in m.module.parameters()}
        astray = [p for p in parameters if id(p) not in inside and p.grad is None]
        if not astray and any(each.grad is not None for each in parameters):
            return
        trained = [
            module
            for module in self._models()
            if any(each.grad is not None for each in module.parameters())
            and not any(id(each) in inside for each in module.parameters())
        ]
        if trained:
            self._watch.add(trained, [])

    def _look_for_a_replacement(self, optimizer: "Optimizer") -> None:
        """Watch the models that get gradients since the parameters of this optimizer get none.

        The model was then re-created in the middle of the training, as for a resume or a fold.
        """
        held = self._gradients.get(optimizer)
        if held is None:
            held = self._gradients[optimizer] = _Gradients()
        if held.are_new(_in(optimizer)):
            held.idle, held.others = 0, []
            return
        held.idle += 1
        if held.idle == _WITHOUT and held.searches < _SEARCHES:
            held.searches += 1
            for model in self._never_updated():
                seen = _Gradients()
                seen.are_new(model.parameters(), all_of_them=True)
                held.others.append((weakref.ref(model), seen))
        elif held.others and held.idle == _WITHOUT + 1:
            # A copy of a trained model has its gradients, too, but they stay as they are.
            pairs = [(model(), seen) for model, seen in held.others]
            trained = [m for m, seen in pairs if m is not None and seen.are_new(m.parameters())]
            held.others = []
            if trained:
                own = {id(p) for p in _in(optimizer)}
                models = [each.module for each in self._watch.roster.models]
                left = [m for m in models if any(id(p) in own for p in m.parameters())]
                self._watch.replace(left, trained)

    def _never_updated(self) -> "list[nn.Module]":
        """Return the live models that can be trained, and that no optimizer that steps holds."""
        idle = _parameters_of([*self._waiting, *self._unsettled])
        known = {id(p) for p in self._watch.roster.parameters}
        known |= {key for key, held in self._held.items() if held() is not None}
        known -= idle
        return [
            module
            for module in live_models()
            if any(p.requires_grad and p.grad is not None for p in module.parameters())
            and not any(id(p) in known for p in module.parameters())
        ]

    def _look_for_forgotten_models(self) -> None:
        """Watch models in train mode that receive gradients and that no optimizer has ever held.

        A network that only measures (a perceptual loss, a teacher) is frozen or in eval mode; one
        that was trained in an earlier stage has its gradients from there.
        """
        known = {id(p) for p in self._watch.roster.parameters} | _parameters_of(list(self._waiting))
        known |= {key for key, held in self._held.items() if held() is not None}
        forgotten = [
            module
            for module in self._models()
            if module.training
            and any(p.requires_grad and p.grad is not None for p in module.parameters())
            and not any(id(p) in known for p in module.parameters())
        ]
        if forgotten:
            self._watch.add(forgotten, [])


class _Gradients:
    """The gradients that some parameters had when they were last looked at."""

    def __init__(self) -> None:
        self.idle = 0  # steps in a row without a new one
        self.searches = 0
        self.others: list[tuple[weakref.ref[nn.Module], _Gradients]] = []  # that may be trained
        self._seen: dict[int, tuple[weakref.ref[Tensor], int]] = {}  # by parameter, with versions

    def are_new(self, parameters: "Iterable[Tensor]", *, all_of_them: bool = False) -> bool:
        """Whether a parameter has another gradient, or one that was written to, than before.

        It ends at the first parameter if that has: the others are read only where it has not.
        """
        is_any_new, is_any_old = False, all_of_them
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is None:
                continue
            before, version = self._seen.get(id(parameter)), gradient._version  # noqa: SLF001
            if before is not None and before[0]() is gradient and before[1] == version:
                is_any_old = True
                continue
            self._seen[id(parameter)] = weakref.ref(gradient), version
            is_any_new = True
            if not is_any_old:
                break
        return is_any_new


def live_models() -> "list[nn.Module]":
    """Return every module with parameters that is not part of another module."""
    from torch import nn

    # By type: isinstance would trigger the lazy proxies of some libraries. There are a million
    # objects, and a few hundred kinds of modules.
    kinds = _kinds(nn.Module)
    live: list[Any] = gc.get_objects()
    modules = [each for each in live if type(each) in kinds and "_modules" in each.__dict__]
    parts = {id(part) for module in modules for part in module.children()}
    whole = [each for each in modules if id(each) not in parts]
    return [each for each in whole if next(each.parameters(), None) is not None]


def _kinds(kind: type) -> set[type]:
    """Return a class and all that derive from it."""
    kinds: set[type] = {kind}
    new = [kind]
    while new:
        derived: list[type] = type.__subclasses__(new.pop())
        new += [each for each in derived if each not in kinds]
        kinds.update(derived)
    return kinds


def _holding(parameters: set[int], modules: "Sequence[nn.Module]") -> "list[nn.Module]":
    """Return the smallest set of modules that covers `parameters`, found greedily."""
    shares = [({id(p) for p in module.parameters()} & parameters, module) for module in modules]
    chosen: list[nn.Module] = []
    covered: set[int] = set()
    for share, module in sorted(shares, key=lambda each: -len(each[0])):
        if share - covered:
            chosen.append(module)
            covered |= share
    # In order of creation, as in the script.
    return [module for module in modules if module in chosen]


def _parameters_of(optimizers: "Sequence[Optimizer]") -> set[int]:
    return {
        id(each)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for each in group["params"]
    }


def _in(optimizer: "Optimizer") -> "Iterator[Tensor]":
    return (each for group in optimizer.param_groups for each in group["params"])


def _updater(module: "nn.Module") -> str:
    """Say who updates a model that no torch optimizer updates."""
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(module, keras.Layer):
        return "Keras"
    fastai = sys.modules.get("fastai.optimizer")
    if fastai is not None:
        parameters = {id(parameter) for parameter in module.parameters()}
        optimizers = [o for o in gc.get_objects() if issubclass(type(o), fastai.Optimizer)]
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        if any(id(parameter) in parameters for group in groups for parameter in group["params"]):
            return "fastai"
    return "The script"


def _named(leaves: "Iterable[Tensor]") -> "list[tuple[str, Tensor]]":
    """Name tensors by the script's global variables."""
    variables = {id(value): name for name, value in vars(sys.modules["__main__"]).items()}
    return [
        (variables.get(id(leaf), f"tensor {number}"), leaf) for number, leaf in enumerate(leaves)
    ]
