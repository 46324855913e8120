"""Who is trained by whom: models, their optimizers, and a name for every parameter."""

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

_WRAPPERS = ("module.", "_orig_mod.")  # what DDP and torch.compile put before a parameter's name

_DROPOUT = nn.modules.dropout._DropoutNd  # noqa: SLF001  (the base of all dropout modules)
_BATCH_NORM = nn.modules.batchnorm._NormBase  # noqa: SLF001  (the base of all batch norms)


@dataclass(frozen=True, eq=False)
class Subject:
    """One optimizer and what its step concerns: its parameters first, then those of nobody."""

    index: int
    label: str
    optimizer: "weakref.ref[Optimizer]"
    names: tuple[str, ...]
    parameters: tuple[Tensor, ...]
    held: int  # how many of the parameters the optimizer holds
    groups: tuple[str, ...]
    owner: tuple[str, ...]  # the label, as the owners of a reading


@dataclass(frozen=True, eq=False)
class Model:
    """A model that is trained, and those of its modules that mind the difference train/eval."""

    label: str
    prefix: str
    module: nn.Module
    mode_dependent: tuple[nn.Module, ...]


@dataclass(frozen=True, eq=False)
class Roster:
    """All models and optimizers of a training, and every parameter of either."""

    models: tuple[Model, ...] = ()
    subjects: tuple[Subject, ...] = ()
    names: tuple[str, ...] = ()
    parameters: tuple[Tensor, ...] = ()
    optimizers: tuple[int, ...] = ()  # of each parameter: the index of its optimizer, -1 for none
    in_model: tuple[bool, ...] = ()

    def subject_of(self, optimizer: Optimizer) -> Subject | None:
        """The subject of an optimizer, if it is on the roster."""
        for subject in self.subjects:
            if subject.optimizer() is optimizer:
                return subject
        return None

    def is_outdated(self) -> bool:
        """Whether a model has got or lost parameters since."""
        now = {id(each) for model in self.models for each in model.module.parameters()}
        then = {id(p) for p, inside in zip(self.parameters, self.in_model, strict=True) if inside}
        return now != then

    def subjects_holding(self, parameters: Iterable[Tensor]) -> list[Subject]:
        """The subjects that any of `parameters` belongs to."""
        wanted = {id(each) for each in parameters}
        return [s for s in self.subjects if any(id(each) in wanted for each in s.parameters)]

    def joined_by(
        self,
        models: Sequence[tuple[str, nn.Module]],
        optimizers: Sequence[tuple[str, Optimizer]],
    ) -> "Roster":
        """The roster with further models and optimizers; empty labels are chosen here."""
        known = _add_models(self.models, models)
        subjects = [s for s in self.subjects if s.optimizer() is not None]
        labels = {s.label for s in self.subjects}
        alone = not self.subjects and len(optimizers) == 1
        count = len(self.subjects)
        named = _parameter_names(known)
        held: list[tuple[int, str, Optimizer]] = []
        for given, optimizer in optimizers:
            old = _same_parameters(subjects, optimizer)
            if old is not None:  # the script has made its optimizer anew
                subjects.remove(old)
                held.append((old.index, old.label, optimizer))
                continue
            label = given or ("" if alone else _label_for(optimizer, known))
            label = _unique(label, labels)
            labels.add(label)
            held.append((count, label, optimizer))
            count += 1
        held += [(s.index, s.label, live) for s in subjects if (live := s.optimizer()) is not None]
        return _assemble(known, sorted(held, key=lambda each: each[0]), named)


def _assemble(
    models: tuple[Model, ...],
    held: Sequence[tuple[int, str, Optimizer]],
    named: dict[int, tuple[str, Tensor]],
) -> Roster:
    holder: dict[int, int] = {}
    everyone = dict(named)
    for index, label, optimizer in held:
        for number, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                holder.setdefault(id(parameter), index)
                where = f"{label or 'optimizer'}.param_groups[{number}][{place}]"
                everyone.setdefault(id(parameter), (where, parameter))
    subjects = []
    for index, label, optimizer in held:
        own = {key for key, holding in holder.items() if holding == index}
        nobodys = {key for key in _beside(models, own) if key not in holder}
        members = [everyone[key] for key in everyone if key in own]
        members += [everyone[key] for key in everyone if key in nobodys]
        start = f"{label} " if label else ""
        subjects.append(
            Subject(
                index=index,
                label=label,
                optimizer=weakref.ref(optimizer),
                names=tuple(name for name, _ in members),
                parameters=tuple(parameter for _, parameter in members),
                held=len(own),
                owner=(label,),
                groups=tuple(f"{start}group {n}" for n in range(len(optimizer.param_groups))),
            )
        )
    return Roster(
        models=models,
        subjects=tuple(subjects),
        names=tuple(name for name, _ in everyone.values()),
        parameters=tuple(parameter for _, parameter in everyone.values()),
        optimizers=tuple(holder.get(key, -1) for key in everyone),
        in_model=tuple(key in named for key in everyone),
    )


def _add_models(
    known: tuple[Model, ...], models: Sequence[tuple[str, nn.Module]]
) -> tuple[Model, ...]:
    alone = not known and len(models) == 1
    labels = {model.label for model in known}
    added = list(known)
    for given, module in models:
        if any(model.module is module for model in added):
            continue
        label = _unique(given or _unwrapped(module).__class__.__name__, labels)
        labels.add(label)
        prefix = "" if alone else f"{label}."
        added.append(Model(label, prefix, module, mode_dependent(module)))
    return tuple(added)


def mode_dependent(model: nn.Module) -> tuple[nn.Module, ...]:
    """Dropout and batch norm in the trained parts of a model: eval mode changes what they do."""
    found = []
    for parent in model.modules():
        trained = any(each.requires_grad for each in parent.parameters())
        for child in [parent, *parent.children()] if parent is model else parent.children():
            if isinstance(child, _DROPOUT) and child.p > 0 and trained:
                found.append(child)
            elif isinstance(child, _BATCH_NORM) and child.track_running_stats:
                own = list(child.parameters())
                if any(each.requires_grad for each in own) or (not own and trained):
                    found.append(child)
    return tuple(dict.fromkeys(found))


def _parameter_names(models: Iterable[Model]) -> dict[int, tuple[str, Tensor]]:
    named: dict[int, tuple[str, Tensor]] = {}
    for model in models:
        for name, parameter in model.module.named_parameters():
            named.setdefault(id(parameter), (model.prefix + _without_wrappers(name), parameter))
    return named


def _without_wrappers(name: str) -> str:
    for wrapper in _WRAPPERS:
        name = name.removeprefix(wrapper)
    return name


def _unwrapped(module: nn.Module) -> nn.Module:
    """What a wrapper without parameters of its own wraps: DDP, torch.compile."""
    children = dict(module.named_children())
    for wrapper in _WRAPPERS:
        if list(children) == [wrapper.rstrip(".")]:
            return _unwrapped(children[wrapper.rstrip(".")])
    return module


def _beside(models: Iterable[Model], own: set[int]) -> set[int]:
    """All parameters of the models that hold any parameter of `own`; of all models if none does."""
    families = [{id(each) for each in model.module.parameters()} for model in models]
    touched = [family for family in families if family & own] or families
    return set().union(*touched)


def _same_parameters(subjects: Iterable[Subject], optimizer: Optimizer) -> Subject | None:
    mine = {id(each) for group in optimizer.param_groups for each in group["params"]}
    for subject in subjects:
        old = subject.optimizer()
        if old is not None:
            theirs = {id(each) for group in old.param_groups for each in group["params"]}
            if theirs == mine:
                return subject
    return None


def _label_for(optimizer: Optimizer, models: Sequence[Model]) -> str:
    """The model or part of a model that an optimizer trains, else the optimizer's class."""
    mine = {id(each) for group in optimizer.param_groups for each in group["params"]}
    parts = [(model.label, model.module) for model in models]
    parts += [part for model in models for part in model.module.named_children()]
    families = [(label, {id(each) for each in module.parameters()}) for label, module in parts]
    for fits in (set.__eq__, set.__le__):
        for label, family in families:
            if fits(mine, family):
                return label
    return optimizer.__class__.__name__


def _unique(label: str, taken: set[str]) -> str:
    if label not in taken:
        return label
    number = 2
    while f"{label or 'training'} ({number})" in taken:
        number += 1
    return f"{label or 'training'} ({number})"
