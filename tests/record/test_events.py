"""Events: one class a kind, the same lines on disk, and lenience towards other versions."""

import json
import math
from dataclasses import fields, is_dataclass

import pytest

from holter.record import Event, Run, Writer, events
from holter.record.births import Birth, Operand
from holter.record.events import (
    KINDS,
    BirthFound,
    ChangeTried,
    LoaderSeen,
    LrRangeStop,
    MixingModule,
    Occurrence,
    OverfitFloor,
    PassBegan,
    Resumed,
    SamplesFound,
    SchedulerSeen,
    SkippedStep,
    TriageMade,
    Unknown,
    WindowMeasure,
)

OPERAND = Operand("p", (2, 3), "float32", 0.0, 1.0, zeros=1, nonfinite=0)
BIRTH = Birth(
    *("log", "log of zero", "forward", "train.py:13", "p.log()", "", ""),
    operands=(OPERAND,),
    count=1,
    of=6,
    samples=(1,),
    positions=((1, 2), (1, 0)),
    passed_on=2,
    passed_to=("head",),
    headroom=None,
    says="-inf is born in log",
)


@pytest.mark.parametrize(
    "what",
    [
        LoaderSeen("loader 0", batches=None, batch_size=4, workers=2, shuffled=True),
        SchedulerSeen("StepLR", early=True, gamma=0.5, milestones=(5, 8)),
        SkippedStep("", by="holter"),
        Resumed(),
        LrRangeStop("sweep 0", "not finite", rate=None),
        LrRangeStop("sweep 0", "not finite", rate=math.inf),
        MixingModule("rnn", "LSTM", batch_first=False),
        BirthFound(BIRTH, failing=7),
        ChangeTried("float32", measure=WindowMeasure(1.5, nonfinite_at=7)),
        ChangeTried("clip to 1", why_not="gradients are clipped to 0.5 already"),
        TriageMade(batch_on_older_weights=True, samples=(27,)),
        Unknown("checkpoint", {"path": "x"}),
    ],
)
def test_an_event_is_read_as_it_was_written(tmp_path, what) -> None:
    writer = Writer(tmp_path)
    writer.event(what, 3)
    writer.close()
    (event,) = Run.load(tmp_path).events
    assert (event.step, event.what) == (3, what)


def test_kinds_and_fields_on_disk_are_those_that_older_runs_have() -> None:
    line = Event(3, 0.5, SkippedStep("head", by="holter")).to_json()
    assert line == {
        "step": 3,
        "wall": 0.5,
        "kind": "skipped step",
        "optimizer": "head",
        "by": "holter",
    }
    assert sorted(KINDS) == [
        "all changes tried",
        "axis moved",
        "batch",
        "birth",
        "capture",
        "change tried",
        "code pattern",
        "code read",
        "copy",
        "cure tried",
        "data evaluated",
        "device read",
        "evaluation",
        "exception",
        "experiment",
        "experiment failed",
        "figure",
        "gradients unapplied",
        "handwritten loss",
        "holter failed",
        "label suspected",
        "labels",
        "labels examined",
        "loader",
        "lr-range note",
        "lr-range stop",
        "memory exhausted",
        "mixing module",
        "mode",
        "nonfinite variables",
        "not applicable",
        "not deterministic",
        "operation differed",
        "optimizer",
        "order",
        "out of time",
        "overfit floor",
        "pass",
        "pass measured",
        "process group",
        "rate cut",
        "reproduction",
        "results kept",
        "resume",
        "rollback",
        "running statistics",
        "sample",
        "samples found",
        "scheduler",
        "silence",
        "skipped step",
        "slice",
        "state loaded",
        "state unsaved",
        "triage",
        "trial failed",
        "tried",
        "uneven inputs joined",
        "weights edited",
        "worst example",
    ]


def test_every_class_of_an_event_is_listed() -> None:
    classes = {
        cls
        for cls in vars(events).values()
        if isinstance(cls, type) and issubclass(cls, Occurrence) and is_dataclass(cls)
    }
    assert classes == {*KINDS.values(), Unknown}
    for cls in KINDS.values():
        assert not {"step", "wall", "kind"} & {field.name for field in fields(cls)}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"kind": "checkpoint", "path": "x"}, Unknown("checkpoint", {"path": "x"})),
        ({"kind": "pass"}, PassBegan("")),
        ({"kind": "pass", "loader": "a", "epoch": 3}, PassBegan("a")),
        ({"kind": "pass", "loader": 7}, PassBegan("")),
        ({"kind": "loader", "loader": "a", "batches": "many"}, LoaderSeen("a")),
        ({"kind": "scheduler", "scheduler": "A", "gamma": 1}, SchedulerSeen("A", gamma=1.0)),
        ({"kind": "scheduler", "scheduler": "A", "horizon": True}, SchedulerSeen("A")),
        ({"kind": "samples found", "what": "a"}, SamplesFound("a")),
        ({"kind": "overfit floor", "trial": "a", "unknown": "b"}, OverfitFloor("a", unknown="b")),
        ({"kind": "change tried", "name": "a", "measure": [1]}, ChangeTried("a")),
    ],
)
def test_events_of_other_versions_do_not_raise(tmp_path, line, what) -> None:
    Writer(tmp_path).close()
    text = json.dumps({"step": 1, "wall": 0.5, **line})
    (tmp_path / "rank-0" / "events.jsonl").write_text(f"{text}\n")
    (event,) = Run.load(tmp_path).events
    assert event == Event(1, 0.5, what)


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_without_fields_has_values_of_their_types(kind) -> None:
    event = Event.of({"step": 1, "wall": 0.5, "kind": kind})
    assert type(event.what) is KINDS[kind]
    assert Event.of(event.to_json()) == event


def test_events_of_one_kind_keep_step_and_order() -> None:
    listed = [
        Event(0, 0.0, PassBegan("a")),
        Event(1, 0.0, Resumed()),
        Event(2, 0.0, PassBegan("b")),
    ]
    run = Run.of({}, events=listed)
    passes = run.events_of(PassBegan)
    assert [(event.step, event.what.loader) for event in passes] == [(0, "a"), (2, "b")]
    assert run.events_of(SkippedStep) == []
