"""What meta.json says of the models, optimizers and parameters that are watched."""

from typing import Any

from torch.optim import Optimizer

from holter.record.meta import ModelSummary, OptimizerSummary, ParameterSummary
from holter.watching.collectors.roster import Roster
from holter.watching.listening.unseen_updates import UnseenOptimizer


def summary(roster: Roster) -> dict[str, Any]:
    """Return the fields of meta.json about models, optimizers and parameters."""
    models = tuple(
        ModelSummary(
            model.label,
            type(model.module).__name__,
            parameters=sum(p.numel() for p in model.module.parameters()),
            trainable=sum(p.numel() for p in model.module.parameters() if p.requires_grad),
            mode_dependent_modules=len(model.mode_dependent),
        )
        for model in roster.models
    )
    optimizers = tuple(
        OptimizerSummary(subject.label, _class_of(optimizer), len(subject.groups))
        for subject in roster.subjects
        if (optimizer := subject.optimizer()) is not None
    )
    parameters = {
        name: ParameterSummary(tuple(parameter.shape), str(parameter.dtype).removeprefix("torch."))
        for name, parameter in zip(roster.names, roster.parameters, strict=True)
    }
    return {"model": models, "optimizers": optimizers, "parameters": parameters}


def _class_of(optimizer: Optimizer) -> str:
    return optimizer.by if isinstance(optimizer, UnseenOptimizer) else type(optimizer).__name__
