"""Every birth of the zoo is found where it is; healthy steps have none."""

import pytest

from holter.lab.birth import KINDS, find
from zoo.births import Specimen, corpus

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BIRTHS = [each for each in corpus() if not each.healthy]
HEALTHY = [each for each in corpus() if each.healthy]


def named(specimen: Specimen) -> str:
    return specimen.name


@pytest.mark.parametrize("specimen", HEALTHY, ids=named)
def test_a_healthy_step_has_no_birth(specimen: Specimen) -> None:
    made = specimen.build()
    assert find(made.step, made.models, made.optimizers, samples=made.samples) is None


@pytest.mark.parametrize("specimen", BIRTHS, ids=named)
def test_a_birth_is_found(specimen: Specimen) -> None:
    made = specimen.build()
    birth = find(made.step, made.models, made.optimizers, samples=made.samples)
    assert birth is not None
    assert birth.operation == specimen.operation
    assert birth.samples == specimen.samples
    assert (birth.kind, birth.phase) == (specimen.kind, specimen.phase)
    if specimen.where:
        assert birth.where == specimen.where
        assert birth.line.endswith("# born here")
    else:
        assert birth.where.startswith("torch/optim/")
    if specimen.module:
        assert birth.module == specimen.module
    assert birth.count > 0
    assert bool(birth.node) == (birth.phase == "backward")
    assert birth.says.endswith(".")


def test_the_zoo_has_every_kind_and_many_of_each_phase() -> None:
    kinds = {each.kind for each in BIRTHS}
    assert kinds >= set(KINDS) - {"infinity minus infinity"}
    assert len(BIRTHS) >= 30
    assert len(HEALTHY) >= 15
    for phase in ("forward", "backward", "update"):
        assert sum(each.phase == phase for each in BIRTHS) >= 4
    for dtype in ("float32", "float16", "bfloat16"):
        assert sum(each.dtype == dtype for each in BIRTHS) >= 3
