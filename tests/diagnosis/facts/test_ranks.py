"""Ranks side by side: where parameters part, who is gone, who the others wait for."""

import pickle
import time

import pytest

from holter import check
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import ALONE, Ranks, named
from holter.diagnosis.facts.shards import with_global_norms
from holter.diagnosis.facts.stalls import absence, stall
from holter.record.events import ExceptionRaised, SilenceSeen, UnevenInputsJoined
from holter.record.findings import Severity
from holter.record.flight_recorder import FOLDER
from holter.record.heartbeat import Activity
from holter.record.signals import GRAD_TOTAL_NORM, LR, WEIGHT_HASH
from ranked import Process, ranked

EQUAL = {"0.weight": [1, 2, 3, 4], "0.bias": [5, 6, 7, 8]}
PARTED = {"0.weight": [1, 2, 3, 4], "0.bias": [5, 6, 70, 80]}
LONG_AGO = 1e9
LOST = ExceptionRaised("RuntimeError", "Connection closed by peer [127.0.0.1]:1234", "ddp.py:9")


def ranks_of(folder, processes, **options) -> Ranks:
    ranks = Facts(ranked(folder, processes, **options)).ranks
    assert isinstance(ranks, Ranks)
    return ranks


def hashed(parameters, **fields) -> Process:
    return Process({WEIGHT_HASH: parameters}, steps=4, **fields)


def running(step, activity, *, events=(), wall=LONG_AGO, alive=LONG_AGO, **fields) -> Process:
    beat = (step, activity, wall, alive)
    return Process(events=events, status="running", steps=step, beat=beat, **fields)


def silent(step, activity, *, where, collective="") -> Process:
    seen = SilenceSeen(30.0, str(activity), where, "__getitem__", collective)
    return running(step, activity, events=(seen,), alive=LONG_AGO + 60)


def findings(run) -> set[str]:
    return {finding.rule for finding in check(run).findings}


def test_one_process_has_no_ranks(tmp_path):
    run = ranked(tmp_path, {0: Process(wrapper="")})
    assert Facts(run).ranks == ALONE


def test_ranks_are_named_in_words():
    assert named([3]) == "rank 3"
    assert named([0, 2]) == "ranks 0 and 2"
    assert named(range(8)) == "ranks 0, 1, 2, 3 and 4 more"


def test_the_first_parameter_and_step_that_differ_and_the_rank_that_is_alone(tmp_path):
    processes = {rank: hashed(PARTED if rank == 2 else EQUAL) for rank in range(4)}
    split = ranks_of(tmp_path, processes).split
    assert (split.step, split.before, split.parameters, split.ranks) == (2, 1, ("0.bias",), (2,))
    assert split.met_again is None


def test_equal_parameters_do_not_split(tmp_path):
    assert ranks_of(tmp_path, {0: hashed(EQUAL), 1: hashed(EQUAL)}).split is None


def test_steps_of_ranks_that_join_are_other_updates(tmp_path):
    joined = hashed(PARTED, events=(UnevenInputsJoined(),))
    split = ranks_of(tmp_path, {0: hashed(EQUAL), 1: joined}).split
    assert split == "the script uses Join: ranks take different numbers of steps"


def test_gradients_that_differ_with_equal_parameters_are_unreduced(tmp_path):
    processes = {
        rank: Process({WEIGHT_HASH: hashes, GRAD_TOTAL_NORM: {"": [norm] * 4}}, steps=4)
        for rank, hashes, norm in ((0, EQUAL, 1.0), (1, PARTED, 1.2))
    }
    assert findings(ranked(tmp_path, processes)) >= {"unreduced-gradients", "diverged-ranks"}


def test_gradients_that_are_equal_until_parameters_differ_are_reduced(tmp_path):
    processes = {
        rank: Process({WEIGHT_HASH: hashes, GRAD_TOTAL_NORM: {"": norms}}, steps=4)
        for rank, hashes, norms in ((0, EQUAL, [1, 1, 1, 1]), (1, PARTED, [1, 1, 1.2, 1.2]))
    }
    found = findings(ranked(tmp_path, processes))
    assert "diverged-ranks" in found
    assert "unreduced-gradients" not in found


@pytest.mark.parametrize("wrapper", ["DistributedDataParallel", ""])
def test_settings_are_compared_only_where_one_model_is_trained(tmp_path, wrapper):
    processes = {
        rank: Process({LR: {"group 0": [0.1, rate]}}, steps=2, wrapper=wrapper)
        for rank, rate in ((0, 0.1), (1, 0.05))
    }
    found = "rank-settings-apart" in findings(ranked(tmp_path, processes))
    assert found == bool(wrapper)


@pytest.mark.parametrize("joined", [False, True])
def test_step_counts_may_differ_where_inputs_are_joined(tmp_path, joined):
    events = (UnevenInputsJoined(),) if joined else ()
    processes = {
        rank: Process({LR: {"group 0": [0.1] * steps}}, events, steps=steps)
        for rank, steps in ((0, 4), (1, 3))
    }
    assert ("rank-settings-apart" in findings(ranked(tmp_path, processes))) is not joined


def test_the_rank_with_an_exception_of_its_own_is_named(tmp_path):
    own = ExceptionRaised("ValueError", "bad sample 17", "/home/me/train.py:31")
    processes = {
        0: Process(events=(LOST,), status="failed", steps=9),
        1: running(9, Activity.BACKWARD),
        2: Process(events=(own,), status="failed", steps=9),
    }
    gone = absence(ranks_of(tmp_path, processes))
    assert gone.ranks == (2,)
    assert "ValueError at train.py:31" in gone.says


def test_an_exception_on_all_ranks_is_no_missing_rank(tmp_path):
    own = ExceptionRaised("ValueError", "bad sample 17", "train.py:31")
    processes = {r: Process(events=(own,), status="failed", steps=9) for r in (0, 1)}
    assert absence(ranks_of(tmp_path, processes)) is None


def test_of_killed_ranks_the_one_behind_is_named(tmp_path):
    processes = {
        0: Process(events=(LOST,), status="failed", steps=8),
        1: running(8, Activity.BACKWARD),
        2: running(8, Activity.FETCHED),
        3: running(8, Activity.BACKWARD),
    }
    gone = absence(ranks_of(tmp_path, processes))
    assert gone.ranks == (2,)
    assert gone.step == 8
    assert gone.is_certain


def test_a_job_that_was_killed_as_a_whole_misses_nobody(tmp_path):
    processes = {rank: running(8, Activity.BACKWARD) for rank in range(3)}
    ranks = ranks_of(tmp_path, processes)
    assert absence(ranks) is None
    assert stall(ranks) is None


def test_a_running_job_whose_ranks_are_not_in_step_is_fine(tmp_path):
    now = time.time()
    processes = {
        0: running(8, Activity.BACKWARD, wall=now, alive=now),
        1: running(7, Activity.UPDATED, wall=now, alive=now),
    }
    ranks = ranks_of(tmp_path, processes)
    assert absence(ranks) is None
    assert stall(ranks) is None


@pytest.mark.parametrize(("local", "absent"), [("4", None), ("2", None), ("8", (2, 3, 4, 5, 6, 7))])
def test_ranks_of_other_machines_are_not_missed(tmp_path, local, absent):
    process = Process(steps=3, variables={"LOCAL_WORLD_SIZE": local})
    members = range(4) if local == "4" else range(2)
    gone = absence(ranks_of(tmp_path, dict.fromkeys(members, process), world=8))
    assert (gone and gone.ranks) == absent


def test_a_rank_elsewhere_holds_up_those_in_backward(tmp_path):
    processes = {
        rank: silent(8, Activity.BACKWARD, where="train.py:40") for rank in range(4) if rank != 2
    } | {2: silent(8, Activity.VALIDATED, where="evaluate.py:88")}
    found = stall(ranks_of(tmp_path, processes))
    assert found.held_by == (2,)
    assert found.waiting == (0, 1, 3)
    assert found.seconds == pytest.approx(60)
    assert "rank 2 is in __getitem__ at evaluate.py:88" in found.says
    assert "ranks 0, 1 and 3 wait in backward at train.py:40" in found.says


def test_of_ranks_in_collectives_the_flight_recorder_tells_who_is_behind(tmp_path):
    processes = {
        rank: silent(8, Activity.UPDATED, where="train.py:40", collective="all_reduce")
        for rank in range(3)
    }
    ranks = ranks_of(tmp_path, processes)
    assert stall(ranks).held_by == ()
    (tmp_path / FOLDER).mkdir()
    for rank, number in enumerate((7, 6, 7)):
        entry = {
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number,
            "profiling_name": "nccl:all_reduce",
            "state": "completed" if rank == 1 else "started",
        }
        dump = pickle.dumps({"entries": [entry]})
        (tmp_path / FOLDER / f"trace_{rank}").write_bytes(dump)
    found = stall(ranks)
    assert found.held_by == (1,)
    assert "ranks 0 and 2 wait in nccl:all_reduce number 7" in found.says


def test_ranks_that_wait_for_one_at_work_do_not_hang(tmp_path):
    now = time.time()
    processes = {
        0: running(8, Activity.VALIDATED, wall=now, alive=now),
        1: silent(8, Activity.UPDATED, where="train.py:50", collective="barrier"),
    }
    assert stall(ranks_of(tmp_path, processes)) is None


def test_a_silence_that_ended_is_none(tmp_path):
    seen = SilenceSeen(30.0, "updated", "train.py:50")
    later = time.time() + 60
    process = running(8, Activity.UPDATED, events=(seen,), wall=later, alive=later)
    assert stall(ranks_of(tmp_path, {0: process, 1: process})) is None


def test_norms_of_shards_are_those_of_the_whole_for_rules(tmp_path):
    processes = {
        rank: Process({GRAD_TOTAL_NORM: {"": norms}}, steps=3, shards=2)
        for rank, norms in ((0, [3.0, 6.0, 3.0]), (1, [4.0, 8.0, float("nan")]))
    }
    run = ranked(tmp_path, processes)
    whole = with_global_norms(run)[GRAD_TOTAL_NORM][""]
    assert whole.steps.tolist() == [0, 1, 2]
    assert whole.values.tolist() == pytest.approx([5.0, 10.0, float("nan")], nan_ok=True)


def test_a_replica_of_shards_is_not_counted_twice(tmp_path):
    norms = {GRAD_TOTAL_NORM: {"": [3.0]}}
    run = ranked(tmp_path, dict.fromkeys(range(4), Process(norms, steps=1, shards=2)))
    assert with_global_norms(run)[GRAD_TOTAL_NORM][""].values.tolist() == pytest.approx([18**0.5])


def test_norms_of_replicas_stay_as_they_are(tmp_path):
    norms = {GRAD_TOTAL_NORM: {"": [3.0]}}
    run = ranked(tmp_path, dict.fromkeys(range(2), Process(norms, steps=1)))
    assert with_global_norms(run) is run


@pytest.mark.parametrize(("variables", "is_found"), [({"WORLD_SIZE": "2"}, True), ({}, False)])
def test_processes_of_one_launch_without_a_group_are_a_hint(tmp_path, variables, is_found):
    norms = {GRAD_TOTAL_NORM: {"": [1.0, 1.0]}}
    process = Process(norms, steps=2, variables=variables, in_group=False)
    checkup = check(ranked(tmp_path, dict.fromkeys(range(2), process)))
    assert ("unreduced-gradients" in {each.rule for each in checkup.findings}) is is_found
    assert checkup.at_least(Severity.ERROR) == ()


def test_ranks_without_a_wrapper_that_part_are_no_error(tmp_path):
    processes = {
        rank: Process({WEIGHT_HASH: hashes, GRAD_TOTAL_NORM: {"": [norm] * 4}}, steps=4, wrapper="")
        for rank, hashes, norm in ((0, EQUAL, 1.0), (1, PARTED, 1.2))
    }
    checkup = check(ranked(tmp_path, processes))
    assert {each.rule for each in checkup.findings} >= {"unreduced-gradients", "diverged-ranks"}
    assert checkup.at_least(Severity.ERROR) == ()


def test_a_rank_that_finished_while_others_needed_it_is_named(tmp_path):
    processes = {
        0: Process(events=(LOST,), status="failed", steps=9),
        1: Process(status="finished", steps=7),
    }
    gone = absence(ranks_of(tmp_path, processes))
    assert gone.ranks == (1,)
    assert "finished after 7 steps" in gone.says
