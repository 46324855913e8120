"""Who is trained by whom: models, their optimizers, and a name for every parameter."""

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.optim import Optimizer

from holter.watching.collectors.naming import (
    Naming,
    is_weight,
    mode_dependent,
    named_parameters,
    unregistered_parameters,
)
from holter.watching.stats.shards import local

Keys = frozenset[int]  # identities of parameters

# Of each optimizer: whether its parameters, by identity, were trainable when it was given them.
_given: "weakref.WeakKeyDictionary[Optimizer, dict[int, bool]]" = weakref.WeakKeyDictionary()


def note_given(optimizer: Optimizer) -> None:
    """Remember which of the parameters that an optimizer holds were trainable when it got them."""
    noted = _given.setdefault(optimizer, {})
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            noted.setdefault(id(parameter), trains(parameter))


@dataclass(frozen=True, eq=False)
class Subject:
    """One optimizer, its parameters, and then parameters that no optimizer holds."""

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
    """A model that is trained, and its modules that behave differently in eval mode."""

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
    trainable: tuple[bool, ...] = ()
    given: tuple[bool, ...] = ()  # trainable when an optimizer got them; else as they are
    naming: Naming = field(default_factory=Naming)
    unregistered: Keys = frozenset()  # what models keep where their `parameters()` is blind
    former: Mapping[int, str] = field(default_factory=dict)  # names of what replaced models held

    def subject_of(self, optimizer: Optimizer) -> Subject | None:
        """The subject of an optimizer, if it is on the roster."""
        for subject in self.subjects:
            if subject.optimizer() is optimizer:
                return subject
        return None

    def subjects_holding(self, parameters: Iterable[Tensor]) -> list[Subject]:
        """The subjects that any of `parameters` belongs to."""
        wanted = {id(parameter) for parameter in parameters}
        return [
            s for s in self.subjects if any(id(parameter) in wanted for parameter in s.parameters)
        ]

    def is_outdated(self) -> bool:
        """Whether a model has got, lost, frozen or thawed parameters since."""
        then_held = zip(self.parameters, self.in_model, self.trainable, strict=True)
        then = {
            (id(parameter), trainable)
            for parameter, inside, trainable in then_held
            if inside and id(parameter) not in self.unregistered
        }
        current = (parameter for model in self.models for parameter in model.module.parameters())
        weights = (parameter for parameter in current if is_weight(parameter))
        return then != {(id(parameter), trains(parameter)) for parameter in weights}

    def joined_by(
        self,
        models: Sequence[tuple[str, nn.Module]] = (),
        optimizers: Sequence[tuple[str, Optimizer]] = (),
    ) -> "Roster":
        """The roster as it is now, with further models and optimizers; empty labels are chosen."""
        registered = {id(model.module) for model in self.models}
        fresh = [(given, module) for given, module in models if id(module) not in registered]
        modules = [(m.label, m.prefix, m.module) for m in self.models]
        modules += [
            (*self.naming.model(given, module, len(fresh)), module) for given, module in fresh
        ]
        labelled = [(label, module) for label, _, module in modules]
        held = [
            (*self.naming.optimizer(given, optimizer, len(optimizers), labelled), optimizer)
            for given, optimizer in optimizers
        ]
        replaced = {index for index, _, _ in held}
        held += [
            (subject.index, subject.label, optimizer)
            for subject in self.subjects
            if (optimizer := subject.optimizer()) is not None and subject.index not in replaced
        ]
        held.sort(key=lambda holding: holding[0])
        chosen = [Model(*m, mode_dependent(m[2])) for m in modules]
        return _assemble(self.naming, chosen, held, self.former)

    def without(self, replaced: Iterable[nn.Module]) -> "Roster":
        """The roster without models that others have replaced.

        What optimizers hold of them keeps its name, and is in no model.
        """
        gone = {id(module) for module in replaced}
        kept = [model for model in self.models if id(model.module) not in gone]
        names = zip(self.parameters, self.names, strict=True)
        former = {id(parameter): name for parameter, name in names}
        return _assemble(self.naming, kept, self._held(), {**self.former, **former})

    def _held(self) -> list[tuple[int, str, Optimizer]]:
        return [(s.index, s.label, o) for s in self.subjects if (o := s.optimizer()) is not None]

    def without_dead(self) -> "Roster":
        """The roster without optimizers that are gone, and without models that only they trained.

        A watch must not keep alive what the script has deleted.
        """
        live = [s for s in self.subjects if s.optimizer() is not None]
        if len(live) == len(self.subjects):
            return self
        trained = {id(parameter) for subject in live for parameter in subject.parameters}
        kept = [m for m in self.models if any(id(p) in trained for p in m.module.parameters())]
        return _assemble(self.naming, kept, self._held(), self.former)


def _assemble(
    naming: Naming,
    models: Sequence[Model],
    held: Sequence[tuple[int, str, Optimizer]],
    former: Mapping[int, str],
) -> Roster:
    named: dict[int, tuple[str, Tensor]] = {}
    for model in models:
        for name, parameter in named_parameters(model.module):
            named.setdefault(id(parameter), (model.prefix + name, parameter))
    registered = frozenset(named)
    families = [
        frozenset(id(parameter) for parameter in model.module.parameters()) for model in models
    ]
    for place, model in enumerate(models):
        for name, parameter in unregistered_parameters(model.module):
            if id(parameter) not in named:
                named[id(parameter)] = (model.prefix + name, parameter)
                families[place] |= {id(parameter)}
    everyone = dict(named)
    holder: dict[int, int] = {}
    given: dict[int, bool] = {}
    for index, label, optimizer in held:
        note_given(optimizer)
        given = _given[optimizer] | given
        for number, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                holder.setdefault(id(parameter), index)
                where = f"{label or 'optimizer'}.param_groups[{number}][{place}]"
                if id(parameter) in former:
                    where = former[id(parameter)]
                elif "param_names" in group:
                    where = group["param_names"][place]
                everyone.setdefault(id(parameter), (where, parameter))
    return Roster(
        models=tuple(models),
        subjects=tuple(_subject(holding, everyone, holder, families) for holding in held),
        names=tuple(name for name, _ in everyone.values()),
        parameters=tuple(parameter for _, parameter in everyone.values()),
        optimizers=tuple(holder.get(key, -1) for key in everyone),
        in_model=tuple(key in named for key in everyone),
        trainable=tuple(trains(parameter) for _, parameter in everyone.values()),
        given=tuple(given.get(key, each.requires_grad) for key, (_, each) in everyone.items()),
        naming=naming,
        unregistered=frozenset(named) - registered,
        former={key: name for key, name in former.items() if key in holder},
    )


def trains(parameter: Tensor) -> bool:
    """Whether it is to be trained here: of a small sharded one a process may hold nothing."""
    return parameter.requires_grad and local([parameter])[0].numel() > 0


def _subject(
    entry: tuple[int, str, Optimizer],
    everyone: dict[int, tuple[str, Tensor]],
    holder: dict[int, int],
    families: Sequence[Keys],
) -> Subject:
    index, label, optimizer = entry
    # Its own even where another optimizer holds them too.
    keys = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    own = [entry for key, entry in everyone.items() if key in keys]
    # Of the models it trains (of all models, if it trains none), what no optimizer holds.
    trained = [family for family in families if family & keys]
    if index == min(
        holder.values(), default=index
    ):  # the first also covers models without an optimizer
        trained += [family for family in families if not family & set(holder)]
    family = set().union(*(trained or families))
    unheld = [entry for key, entry in everyone.items() if key in family and key not in holder]
    start = f"{label} " if label else ""
    return Subject(
        index=index,
        label=label,
        optimizer=weakref.ref(optimizer),
        names=tuple(name for name, _ in own + unheld),
        parameters=tuple(parameter for _, parameter in own + unheld),
        held=len(own),
        groups=tuple(f"{start}group {number}" for number in range(len(optimizer.param_groups))),
        owner=(label,),
    )
