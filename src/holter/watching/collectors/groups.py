"""Process groups: whether a training is one of several processes, and how it is spread."""

import gc
import math
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from holter.record.events import ProcessGroupSeen
from holter.watching.collectors.naming import unwrapped
from holter.watching.collectors.roster import Roster
from holter.watching.stats.shards import whole

_BATCH_NORM = nn.modules.batchnorm._BatchNorm  # noqa: SLF001  (the base of all batch norms)
_distributed: Any = torch.distributed  # partly without types


def in_process_group() -> bool:
    """Whether this process belongs to a torch.distributed process group."""
    return bool(_distributed.is_available() and _distributed.is_initialized())


def world_size() -> int:
    """Return the number of processes that train together."""
    return int(_distributed.get_world_size()) if in_process_group() else 1


def described(roster: Roster) -> ProcessGroupSeen:
    """Say how the models of a roster are spread over the process group."""
    modules = [module for model in roster.models for module in model.module.modules()]
    norms = [module for module in modules if isinstance(module, _BATCH_NORM)]
    sharded = [parameter for parameter in roster.parameters if whole(parameter) is None]
    shards = _shards(sharded[0]) if sharded else 1
    wrapper, replicas, ignored = "", 0, ()
    replicating = _replicating(roster)
    fully_sharded = [name for module in modules if (name := _fully_sharded(module))]
    if replicating is not None:
        wrapper = type(replicating).__name__
        replicas = _distributed.get_world_size(replicating.process_group)
        ignored = tuple(sorted(replicating.parameters_to_ignore))
    elif fully_sharded:
        wrapper = fully_sharded[0]
        replicas = _replicas(sharded)
        shards = shards if sharded else world_size()  # the older wrapper has shards of its own
    return ProcessGroupSeen(
        str(_distributed.get_backend()),
        int(_distributed.get_rank()),
        world_size(),
        wrapper,
        replicas,
        shards,
        ignored,
        batch_norms=len(norms),
        synchronised_batch_norms=sum(isinstance(norm, nn.SyncBatchNorm) for norm in norms),
    )


def _replicating(roster: Roster) -> DistributedDataParallel | None:
    """Return the wrapper of a model, which may be known by what is inside of it alone."""
    inner = {id(unwrapped(model.module)) for model in roster.models}
    for model in roster.models:
        for module in model.module.modules():
            if isinstance(module, DistributedDataParallel):
                return module
    # By type: isinstance would trigger the lazy proxies of some libraries.
    wrappers = [
        each for each in gc.get_objects() if issubclass(type(each), DistributedDataParallel)
    ]
    return next((each for each in wrappers if id(unwrapped(each)) in inner), None)


def _fully_sharded(module: nn.Module) -> str:
    """Return what shards the parameters of a module, or an empty string."""
    fsdp: Any = sys.modules.get("torch.distributed.fsdp")  # not imported: nothing does
    if fsdp is None:
        return ""
    if isinstance(module, fsdp.FSDPModule):
        return "fully_shard"
    is_older = isinstance(module, fsdp.FullyShardedDataParallel)
    return "FullyShardedDataParallel" if is_older else ""


def _shards(parameter: Any) -> int:
    """Return the number of processes that a parameter is split over."""
    mesh = parameter.device_mesh
    placements = enumerate(parameter.placements)
    return math.prod(mesh.size(place) for place, each in placements if each.is_shard())


def _replicas(sharded: Sequence[Any]) -> int:
    """Return the number of processes that train one model whose parameters are sharded.

    It is 0 if parameters are split in two ways: then some processes share their batches.
    """
    if any(sum(each.is_shard() for each in one.placements) > 1 for one in sharded):
        return 0
    return int(sharded[0].device_mesh.size()) if sharded else world_size()
