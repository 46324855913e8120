"""Every workload of the zoo, unmodified: its step is recognised, and repeated bit for bit."""

from pathlib import Path
from typing import Any

import pytest

from zoo.specimens import WORKLOADS

TENSORS = {"actor_critic": 0, "autoencoder_vae": 1, "contrastive": 1, "gan": 3, "gru_tagger": 3}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(WORKLOADS.glob("*.py")), ids=lambda path: path.stem)
def test_the_workload_is_recognised(recognised: Any, path: Path) -> None:
    found = recognised(path.read_text(), head="", steps=4)
    assert found.exact
    assert len(found.setup.phases) == (2 if path.stem == "gan" else 1)
    assert len(found.setup.batches(1)[0]) == TENSORS.get(path.stem, 2)
    has_validation = path.stem not in ("actor_critic", "gan")
    assert (found.setup.valid is not None) == has_validation
