"""Discovery: find the models and optimizers of a script, and have them watched."""

import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from holter.watching.watch import Watch


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
        self._held: dict[int, weakref.ref[Tensor]] = {}  # by an optimizer, now or earlier
        self._found: list[weakref.ref[nn.Module]] = []  # models, when an optimizer was last found
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
        self._unsettled.update(optimizers)
        self._held |= {
            id(each): weakref.ref(each)
            for optimizer in optimizers
            for group in optimizer.param_groups
            for each in group["params"]
        }
        models = live_models()
        self._found = [weakref.ref(each) for each in models]
        self._watch.add(_holding(_parameters_of(optimizers), models), optimizers)

    def before_step(self, optimizer: "Optimizer") -> None:
        """Watch a late optimizer; at its first step, check that its parameters are trained."""
        if self._watch.roster.subject_of(optimizer) is None:
            self.optimizer_made(optimizer)
        self.before_backward()
        if optimizer in self._unsettled:
            self._unsettled.discard(optimizer)
            self._look_for_the_trained_model(optimizer)
            self._look_for_forgotten_models()

    def after_unseen_backward(self, known: set[int], leaves: "Callable[[], list[Tensor]]") -> None:
        """Watch models that have gradients, or tensors outside of models, without an optimizer."""
        if self._waiting:
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
