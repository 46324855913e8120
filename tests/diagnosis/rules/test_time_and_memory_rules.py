"""The rules of time and memory, on runs made by hand."""

import numpy as np
import pytest

from holter import check, diagnose
from holter.diagnosis.rules.fragmented_memory import fragmented_memory
from holter.diagnosis.rules.growing_memory import growing_memory
from holter.diagnosis.rules.input_bound import input_bound
from holter.diagnosis.rules.kept_graphs import kept_graphs
from holter.diagnosis.rules.out_of_memory import out_of_memory
from holter.diagnosis.rules.slow_steps import slow_steps
from holter.diagnosis.rules.synchronising_calls import synchronising_calls
from holter.diagnosis.rules.unbatched_operations import unbatched_operations
from holter.record import Event, Meta, Run
from holter.record.events import (
    DeviceRead,
    ExceptionRaised,
    LoaderSeen,
    MemoryExhausted,
    Occurrence,
    PassBegan,
    ResultsKept,
)
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Severity
from holter.record.meta import Environment, Machine
from holter.record.signals import (
    GRAPH_DEPTH,
    GRAPH_KEPT,
    GRAPH_LEAVES,
    GRAPH_OPERATIONS,
    INPUT_ELEMENTS,
    MEMORY_HELD,
    MEMORY_PEAK,
    MEMORY_PROCESS,
    MEMORY_RESERVED,
    MEMORY_RETRIES,
    MEMORY_WORKERS,
    SYNC_CALLS,
    THROUGHPUT_STEP_TIME,
    TIME_BACKWARD,
    TIME_CHECKPOINT,
    TIME_DATA_WAIT,
    TIME_EVALUATION,
    TIME_FORWARD,
    TIME_STEP,
    TIME_SYNC,
)
from synthetic import found, run_of, said

STEPS = 200
MB = 1e6


def events(*what: Occurrence) -> list[Event[Occurrence]]:
    return [Event(0, 0.0, each) for each in what]


def waiting(
    wait: float, step: float = 0.05, workers: int = 0, cores: int | None = None, **tried: float
) -> Run:
    tables = {
        TIME_STEP: {"": np.full(STEPS, step)},
        TIME_DATA_WAIT: {"loader 0": np.full(STEPS, wait)},
    }
    if tried:
        tables[THROUGHPUT_STEP_TIME] = {name: [value] * 3 for name, value in tried.items()}
    meta = Meta(environment=Environment(machine=Machine(cores=cores)))
    return run_of(tables, events=events(LoaderSeen("loader 0", workers=workers)), meta=meta)


def test_input_bound() -> None:
    (finding,) = found(input_bound, waiting(0.04))
    assert finding.confidence is Confidence.LIKELY
    assert finding.severity is Severity.WARNING
    assert "5 times as fast" in finding.summary
    assert "num_workers" in finding.fix
    assert "cheaper" in found(input_bound, waiting(0.04, workers=4))[0].fix


def test_workers_on_the_cores_of_the_training_are_no_fault() -> None:
    (finding,) = found(input_bound, waiting(0.04, workers=2, cores=2))
    assert (finding.confidence, finding.severity) == (Confidence.HINT, Severity.INFO)
    assert "share 2 cores" in finding.summary
    assert "num_workers" not in finding.fix
    (finding,) = found(input_bound, waiting(0.04, workers=2, cores=8))
    assert (finding.confidence, finding.severity) == (Confidence.LIKELY, Severity.WARNING)
    assert "num_workers" in finding.fix


@pytest.mark.parametrize(
    ("wait", "step"),
    [(0.01, 0.05), (0.0009, 0.001), (0.004, 0.006)],
    ids=["small share", "quick", "little lost"],
)
def test_input_not_bound(wait: float, step: float) -> None:
    assert isinstance(said(input_bound, waiting(wait, step))[-1], Clear)


def test_a_cached_batch_proves_or_clears_it() -> None:
    (finding,) = found(input_bound, waiting(0.04, loader=0.06, cached=0.01))
    assert finding.confidence is Confidence.CERTAIN
    assert "6 times" in finding.summary
    (verdict,) = said(input_bound, waiting(0.04, loader=0.011, cached=0.0109))
    assert isinstance(verdict, Clear)


def test_workers_that_start_at_every_pass_are_noted() -> None:
    at = np.arange(STEPS)
    waits = np.where(at % 20 == 0, 0.2, 0.0)
    tables = {
        TIME_STEP: {"": 0.01 + waits},
        TIME_DATA_WAIT: {"loader 0": waits},
    }
    happened = events(LoaderSeen("loader 0", workers=4))
    happened += [Event(int(n), 0.0, PassBegan("loader 0")) for n in at[at % 20 == 0]]
    verdicts = said(input_bound, run_of(tables, events=happened))
    assert [type(verdict) for verdict in verdicts] == [Normal, Clear]
    assert "persistent_workers" in verdicts[0].summary


def interrupted(signal, every: int, seconds: float) -> Run:
    slow = np.arange(STEPS) % every == every - 1
    length = np.where(slow, 0.01 + seconds, 0.01)
    return run_of({TIME_STEP: {"": length}, signal: {"": np.where(slow, seconds, 0.0)}})


def test_checkpoints_that_take_most_of_the_time() -> None:
    (finding,) = found(slow_steps, interrupted(TIME_CHECKPOINT, 10, 0.2))
    assert "20 slow steps" in finding.summary
    assert "checkpoint" in finding.summary


def test_evaluation_and_rare_checkpoints_are_normal() -> None:
    for run in (interrupted(TIME_EVALUATION, 10, 0.2), interrupted(TIME_CHECKPOINT, 100, 1.0)):
        verdicts = said(slow_steps, run)
        assert [type(verdict) for verdict in verdicts] == [Normal, Clear]


def looping(
    operations: float = 800, depth: float = 16, leaves: float = 6, seconds: float = 0.008
) -> Run:
    tables = {
        TIME_STEP: {"": np.full(STEPS, 0.01)},
        TIME_FORWARD: {"": np.full(STEPS, seconds / 2)},
        TIME_BACKWARD: {"": np.full(STEPS, seconds / 2)},
        GRAPH_OPERATIONS: {"": np.full(4, operations)},
        GRAPH_DEPTH: {"": np.full(4, depth)},
        GRAPH_LEAVES: {"": np.full(4, leaves)},
    }
    return run_of(tables)


def test_a_loop_over_samples() -> None:
    (finding,) = found(unbatched_operations, looping())
    assert "800 small operations (10 µs each" in finding.summary
    assert "50 of them are independent" in finding.summary


@pytest.mark.parametrize(
    "run",
    [
        looping(depth=400),  # a loop over time
        looping(leaves=200),  # a deep model
        looping(operations=100),
        looping(seconds=0.002),  # the step is spent elsewhere
    ],
)
def test_operations_that_are_no_loop_over_samples(run: Run) -> None:
    assert [type(verdict) for verdict in said(unbatched_operations, run)] == [Clear]


def synchronised(seconds: float, calls: float) -> Run:
    tables = {
        TIME_STEP: {"": np.full(STEPS, 0.01)},
        TIME_SYNC: {"": np.full(STEPS, seconds)},
        SYNC_CALLS: {"": np.full(STEPS, calls)},
    }
    return run_of(tables, events=events(DeviceRead("item", "train.py:9")))


def test_host_and_gpu_take_turns() -> None:
    (finding,) = found(synchronising_calls, synchronised(0.005, 4))
    assert "train.py:9 (item)" in finding.summary
    assert "would take 5 ms" in finding.summary


@pytest.mark.parametrize(("seconds", "calls"), [(0.0095, 4), (0.0005, 4), (0.005, 0)])
def test_one_waits_for_the_other_anyway(seconds: float, calls: float) -> None:
    (verdict,) = said(synchronising_calls, synchronised(seconds, calls))
    assert isinstance(verdict, Clear)


def test_without_a_gpu_synchronisation_is_not_examined() -> None:
    run = run_of({TIME_STEP: {"": np.full(STEPS, 0.01)}})
    (verdict,) = check(run, select=["synchronising-calls"]).not_examined
    assert "GPU" in verdict.because


def keeping(counts: list[int]) -> Run:
    tables = {GRAPH_KEPT: {"total": counts}, TIME_STEP: {"": np.full(STEPS, 0.01)}}
    return run_of(tables, events=events(ResultsKept("total", "train.py:7", "total += loss", True)))


def test_kept_graphs() -> None:
    (finding,) = found(kept_graphs, keeping(list(range(2, 60))))
    assert finding.confidence is Confidence.CERTAIN
    assert "`total` (train.py:7)" in finding.summary
    assert "`total += loss.detach()`" in finding.fix


def test_few_graphs_are_no_matter() -> None:
    (verdict,) = said(kept_graphs, keeping(list(range(2, 12))))
    assert isinstance(verdict, Clear)


def growing(signal=MEMORY_PROCESS, held: float = 0.0, larger: float = 1.0, rise: float = MB) -> Run:
    at = np.arange(STEPS)
    tables = {
        MEMORY_PROCESS: {"": np.full(STEPS, 300 * MB)},
        signal: {"": 300 * MB + rise * at},
        INPUT_ELEMENTS: {"Net": np.linspace(100, 100 * larger, STEPS)},
    }
    happened = events(ResultsKept("history", "train.py:7", "history.append(x)"))
    if held:
        tables[MEMORY_HELD] = {"history": held * at}
    return run_of(tables, events=happened)


def test_growing_memory_names_the_variable() -> None:
    (finding,) = found(growing_memory, growing(held=MB))
    assert finding.confidence is Confidence.LIKELY
    assert "`history` (train.py:7)" in finding.summary
    assert "`history`" in finding.fix


def test_a_variable_that_holds_little_is_not_named() -> None:
    (finding,) = found(growing_memory, growing(held=0.1 * MB))
    assert finding.confidence is Confidence.HINT
    assert "history" not in finding.summary


def test_workers_that_grow() -> None:
    (finding,) = found(growing_memory, growing(MEMORY_WORKERS, held=MB))
    assert "loader workers" in finding.summary
    assert "__getitem__" in finding.fix


def test_little_growth_is_clear() -> None:
    (verdict,) = said(growing_memory, growing(rise=0.1 * MB))
    assert isinstance(verdict, Clear)


def test_larger_inputs_excuse_growth() -> None:
    (verdict,) = said(growing_memory, growing(larger=3.0))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "larger-batches"


def test_too_few_readings_of_memory() -> None:
    (verdict,) = said(growing_memory, run_of({MEMORY_PROCESS: {"": [1.0] * 10}}))
    assert isinstance(verdict, NotExamined)


def fragmented(*, reserved: float, retries: int, early: int = 0, sizes: int = 1) -> Run:
    """A run whose tensors take 1 GB; the retries begin in the middle, after some early ones."""
    counts = np.full(STEPS, early)
    counts[0] = 0
    counts[STEPS // 2 :] += np.linspace(1, retries, STEPS // 2).astype(int) if retries else 0
    return run_of(
        {
            MEMORY_RETRIES: {"": counts},
            MEMORY_RESERVED: {"": np.linspace(0.5, 1, STEPS) * reserved},
            MEMORY_PEAK: {"": np.linspace(0.5, 1, STEPS) * 1000 * MB},
            INPUT_ELEMENTS: {"model": 100 + np.arange(STEPS) % sizes},
        }
    )


def test_fragmented_memory_is_reported_once_allocations_are_retried() -> None:
    (finding,) = found(fragmented_memory, fragmented(reserved=1600 * MB, retries=12, sizes=90))
    assert finding.severity is Severity.WARNING
    assert finding.onset == STEPS // 2
    for part in ("12 allocations", "38 %", "1.6 GB", "1 GB", "90 different sizes"):
        assert part in finding.summary
    assert "expandable_segments" in finding.fix
    assert "Pad" in finding.fix
    (finding,) = found(fragmented_memory, fragmented(reserved=1600 * MB, retries=12))
    assert "Pad" not in finding.fix


def test_unused_memory_without_retries_is_harmless() -> None:
    (verdict,) = said(fragmented_memory, fragmented(reserved=1600 * MB, retries=0))
    assert isinstance(verdict, Normal)
    (verdict,) = said(fragmented_memory, fragmented(reserved=1600 * MB, retries=0, early=20))
    assert isinstance(verdict, Normal)  # of the warm-up


def test_full_memory_is_not_fragmented() -> None:
    (verdict,) = said(fragmented_memory, fragmented(reserved=1100 * MB, retries=12))
    assert isinstance(verdict, Clear)


def test_fragmentation_needs_readings_of_a_gpu() -> None:
    few = {signal: {"": [1.0] * 5} for signal in (MEMORY_RETRIES, MEMORY_RESERVED, MEMORY_PEAK)}
    (verdict,) = said(fragmented_memory, run_of(few))
    assert isinstance(verdict, NotExamined)


def exhausted(**fields) -> Run:
    what = MemoryExhausted(**{"device": "cuda", "where": "train.py:9", **fields})
    raised = ExceptionRaised("OutOfMemoryError", "CUDA out of memory")
    return run_of({}, events=events(raised, what), meta=Meta(status="failed"))


def only(run: Run) -> Finding:
    (finding,) = found(out_of_memory, run)
    return finding


def test_out_of_memory_names_line_size_and_holders() -> None:
    finding = only(
        exhausted(requested=2 * 10**9, holders=("parameters", "x (train.py)"), sizes=(10**9, 10**8))
    )
    for part in ("train.py:9", "2 GB", "parameters 1 GB", "x (train.py) 100 MB"):
        assert part in finding.summary
    assert "accumulation" in finding.fix
    assert finding.severity is Severity.ERROR


def test_one_tensor_that_is_far_larger_than_the_rest() -> None:
    finding = only(exhausted(requested=10**12, holders=("parameters",), sizes=(10**9,)))
    assert "shapes" in finding.fix


def test_fragmented_memory() -> None:
    finding = only(exhausted(requested=10**9, allocated=10**10, reserved=2 * 10**10))
    assert "expandable_segments" in finding.fix


def test_no_allocation_failed() -> None:
    (verdict,) = said(out_of_memory, run_of({}))
    assert isinstance(verdict, Clear)


def test_what_keeps_memory_explains_that_it_ran_out() -> None:
    run = keeping(list(range(2, 200)))
    what = MemoryExhausted("cpu", requested=10**9)
    run = Run(run.tables, (*run.events, *events(what)), run.meta)
    diagnosis = diagnose(check(run))
    assert diagnosis.leading is not None
    assert diagnosis.leading.rule == "kept-graphs"
    assert [finding.rule for finding in diagnosis.explained] == ["out-of-memory"]
