"""Meta: the keys of `meta.json`, and lenience towards other versions."""

import json

import pytest

from holter.record import Meta, Run, Writer, environment
from holter.record.meta import (
    Environment,
    Git,
    Machine,
    ModelSummary,
    OptimizerSummary,
    ParameterSummary,
)

FULL = Meta(
    status="finished",
    steps=7,
    duration=1.5,
    seed=3,
    model=(ModelSummary("model", "Net", parameters=14, trainable=12, mode_dependent_modules=1),),
    optimizers=(OptimizerSummary("", "SGD", groups=2),),
    parameters={"0.weight": ParameterSummary((2, 3), "float32")},
    notes=("no loader was seen",),
    lost_records=1,
    environment=Environment(
        command=("train.py", "--epochs", "3"),
        module="package.train",
        folder="/x",
        started="2026-03-01T12:00:00+00:00",
        python="3.11.9",
        versions={"torch": "2.6.0"},
        machine=Machine("box", "Linux", "x86_64", 8),
        variables={"RANK": "0"},
        git=Git("abc1234", dirty=True),
    ),
)


def test_meta_is_read_as_it_was_written() -> None:
    assert Meta.of(json.loads(json.dumps(FULL.to_json()))) == FULL
    assert Meta.of(Meta().to_json()) == Meta() == Meta.of({})


def test_keys_on_disk_are_those_that_older_runs_have() -> None:
    document = FULL.to_json()
    assert set(document) == {
        *("status", "steps", "duration", "seed", "model", "optimizers", "parameters", "notes"),
        *(
            "lost_records",
            "command",
            "module",
            "script_digest",
            "folder",
            "started",
            "python",
            "versions",
        ),
        *("machine", "variables", "git", "source"),
    }
    assert document["parameters"] == {"0.weight": [[2, 3], "float32"]}
    assert document["optimizers"] == [{"label": "", "class": "SGD", "groups": 2}]
    assert document["model"][0]["class"] == "Net"
    assert document["git"] == {"commit": "abc1234", "dirty": True}


def test_fields_of_other_versions_do_not_raise() -> None:
    meta = Meta.of(
        {
            "status": 3,
            "steps": "many",
            "duration": 2,
            "git": None,
            "colour": "red",
            "notes": "one",
            "optimizers": [{"class": "Adam"}],
            "machine": {"host": "box"},
            "parameters": {"a": [[2], "float32"], "b": [[2]], "c": None, "d": [["x"], "float32"]},
        }
    )
    assert (meta.status, meta.steps, meta.duration, meta.notes) == (None, None, 2.0, ())
    assert meta.optimizers == (OptimizerSummary("", "Adam"),)
    assert meta.environment == Environment(machine=Machine("box"))
    assert meta.parameters == {"a": ParameterSummary((2,), "float32")}


def test_resuming_keeps_fields_that_this_version_does_not_have(tmp_path) -> None:
    writer = Writer(tmp_path, status="running", environment=Environment(folder="/first"))
    writer.update_meta(seed=3)
    writer.close()
    path = tmp_path / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "red"}))
    Writer(tmp_path, resume=True, environment=Environment(folder="/second")).close()
    document = json.loads(path.read_text())
    assert (document["colour"], document["seed"], document["folder"]) == ("red", 3, "/second")
    assert Run.load(tmp_path).meta.status is None


def test_a_misspelt_field_is_an_error(tmp_path) -> None:
    writer = Writer(tmp_path)
    with pytest.raises(TypeError, match="stauts"):
        writer.update_meta(stauts="finished")
    writer.close()


def test_the_environment_of_this_process() -> None:
    import platform

    import holter

    described = environment.describe()
    assert described.python == platform.python_version()
    assert described.versions["holter"] == holter.__version__
    assert described.machine.host == platform.node()
    assert Meta.of(Meta(environment=described).to_json()).environment == described
