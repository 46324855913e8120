"""The playground: options, networks that are really trained, schedules, tree and gallery."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from served import Serve

from holter._cli import make_parser
from holter.dashboard.playground import options
from holter.dashboard.playground.schedules import schedule
from holter.dashboard.playground.simulator import Simulator
from holter.dashboard.playground.tree import ROOT, TREE
from holter.diagnosis.engine import all_rules
from holter.lab.experiments import all_experiments
from holter.lab.schedules import WarmupCosine
from holter.record.errors import HolterError
from zoo.gallery import SHAPES


def test_options_have_defaults_and_bounds() -> None:
    chosen = options.read(options.NETWORK, {"depth": "12", "activation": "tanh", "other": "x"})
    assert chosen["depth"] == 12
    assert chosen["activation"] == "tanh"
    assert "other" not in chosen
    for query in ({"depth": "1000000"}, {"lr": "nan"}, {"activation": "<b>"}, {"steps": "1e9"}):
        with pytest.raises(HolterError):
            options.read(options.NETWORK, query)


def test_bad_options_are_one_sentence(serve: Serve, tmp_path: Path) -> None:
    answer = serve(tmp_path).get("/api/playground/network?depth=99")
    assert answer.status == 400
    assert answer.json["error"] == "Hidden layers is a number from 1 to 40."


@pytest.fixture(scope="module")
def simulator():
    started = Simulator()
    yield started
    started.close()


def trained(simulator: Simulator, **query: str) -> dict:
    return simulator.ask("network", options.read(options.NETWORK, {"steps": "60", **query}))


def test_a_sound_network_learns_and_nothing_is_found(simulator: Simulator) -> None:
    answer = trained(simulator, steps="100")
    assert answer["outcome"]["state"] == "learned"
    assert answer["findings"] == []
    assert answer["layers"][-1] == "head"
    assert len(answer["gradients"]["rows"]) == len(answer["layers"]) == 9
    assert sum(answer["distribution"][0]["counts"][0]) == 64 * 64


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ({"activation": "sigmoid", "depth": "12", "steps": "100"}, "vanishing-gradients"),
        ({"bias": "-2", "steps": "100"}, "dead-units"),
        ({"init": "large", "lr": "1"}, "nonfinite-loss"),
    ],
)
def test_a_mistake_is_found_by_its_rule(simulator: Simulator, query: dict, rule: str) -> None:
    answer = trained(simulator, **query)
    assert rule in [found["rule"] for found in answer["findings"]]
    json.dumps(answer, allow_nan=False)


def test_residuals_keep_the_gradients_of_a_deep_network(simulator: Simulator) -> None:
    def ratio(**query: str) -> float:
        rows = trained(simulator, activation="sigmoid", depth="12", **query)
        first, last = rows["gradients"]["values"][0][0], rows["gradients"]["values"][-2][0]
        return float(first) / float(last)

    assert ratio(residual="no") < 1e-4
    assert ratio(residual="yes") > 1e-2


def test_the_range_test_suggests_a_rate(simulator: Simulator) -> None:
    answer = simulator.ask("rates", options.read(options.NETWORK, {"depth": "2"}))
    low, rate, high = answer["curve"]["interval"]
    assert 1e-4 < low <= rate <= high < 10
    assert answer["tables"][0]["rows"]


def test_an_answer_is_kept(simulator: Simulator) -> None:
    assert trained(simulator, depth="1") is trained(simulator, depth="1")


def test_a_worker_that_died_is_replaced(simulator: Simulator) -> None:
    assert simulator._process is not None
    simulator._process.kill()
    simulator._process.wait()
    assert trained(simulator, depth="2")["layers"] == ["layer 1", "layer 2", "head"]


def test_a_schedule_is_that_of_the_library() -> None:
    chosen = options.read(options.SCHEDULE, {"steps": "1000", "warmup": "10", "floor": "20"})
    answer = schedule(chosen)
    share = WarmupCosine(100, 1000, 0.2)
    rates = dict(zip(answer["steps"], answer["rates"], strict=True))
    assert {0, 100, 999} <= set(rates)
    assert all(rate == pytest.approx(3e-4 * share(step), rel=1e-4) for step, rate in rates.items())
    assert "holter.warmup_cosine(optimizer, warmup=100, steps=1000, floor=0.2)" in answer["code"]
    one_cycle = schedule({**chosen, "kind": "one-cycle", "warmup": 0})
    assert "holter.one_cycle" in one_cycle["code"]


def test_the_tree_ends_at_rules_and_every_question_is_reached() -> None:
    reached, frontier = set(), [ROOT]
    while frontier:
        name = frontier.pop()
        if name not in reached:
            reached.add(name)
            frontier += [reply.to for reply in TREE[name].replies if reply.to]
    assert reached == set(TREE)
    for question in TREE.values():
        for reply in question.replies:
            assert bool(reply.to) != bool(reply.rules)
            assert set(reply.rules) <= set(all_rules())


def test_the_commands_of_the_tree_exist() -> None:
    commands = next(action.choices for action in make_parser()._actions if action.dest == "command")
    for question in TREE.values():
        if question.command:
            _, command, *words = question.command.split()
            assert command in commands
            if command == "try":
                assert words[0] in {*all_experiments(), "preflight", "replay", "cures"}


def test_the_gallery_is_small_and_its_diagnoses_are_rules() -> None:
    text = files("holter.dashboard.playground").joinpath("gallery.json").read_text()
    assert len(text) < 300_000
    pictures = json.loads(text)
    assert [(each["shape"], each["rule"]) for each in pictures] == list(SHAPES)
    for each in pictures:
        assert each["leading"] == each["rule"]
        assert each["leading"] in all_rules()
        assert len(each["train"]["steps"]) == len(each["train"]["values"]) > 20


def test_assets_are_plain_and_load_nothing_from_elsewhere() -> None:
    for file in files("holter.dashboard").joinpath("assets").iterdir():
        text = file.read_text()
        assert "innerHTML" not in text
        hosts = set(re.findall(r"https?://[\w.]+", text)) - {"http://www.w3.org"}
        assert hosts == set()
        assert max(map(len, text.splitlines())) < 200
