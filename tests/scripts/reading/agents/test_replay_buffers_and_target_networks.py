"""Readers of replay buffers, target networks, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


def environment(step: str, use: str, more: str = "") -> str:
    """An environment whose `step` begins so, and what a script does with it."""
    lines = indent(dedent(step), " " * 8)
    return (
        "class World:\n    def reset(self):\n        self.state = np.zeros(4)\n"
        f"        return self.state\n    def step(self, a):\n{lines}\n"
        "        return self.state, 1.0, False\n"
        f"{dedent(more)}\nenv = World()\ns = env.reset()\nfor t in range(9):\n"
        f"{indent(dedent(use), '    ')}\n    s = s2\n"
    )


STORE = "s2, r, done = env.step(a)\nbuffer.append((s, a, r, s2))"
WRITE = "self.state[0] += a"
FOUND = {
    "returned state": (
        environment(WRITE, STORE),
        environment("self.state[:] = self.state + a", STORE),
        environment(
            WRITE,
            "s2, r, done = env.step(a)\nmemory.push(s, a, r)",
            "class Memory:\n    def push(self, *row):\n        self.rows.append(row)\n",
        ),
    ),
    "reversed copy": (
        "for t in range(9):\n    q.load_state_dict(target.state_dict())",
        "class A:\n    def sync(self):\n        self.q.load_state_dict(self.q_target.state_dict())",
        "while running:\n    if t % 9 == 0:\n        net.load_state_dict(target_net.state_dict())",
    ),
}
NOT_FOUND = {
    "returned state": (
        environment(WRITE, STORE.replace("(s, a", "(s.copy(), a")),
        environment("self.state = self.state.copy()\n" + WRITE, STORE),
        environment("self.state = self.state + a", STORE),
        environment(WRITE, "s2, r, done = env.step(a)\nrewards.append(r)"),
        environment(
            WRITE,
            "s2, r, done = env.step(a)\nmemory.add(s, a, r)",
            "class Memory:\n    def add(self, s, a, r):\n        self.states[self.at] = s\n",
        ),
    ),
    "reversed copy": (
        "for t in range(9):\n    target.load_state_dict(q.state_dict())",
        "q.load_state_dict(target.state_dict())",
        "class A:\n    def __init__(self):\n        q.load_state_dict(target.state_dict())",
        "for t in range(9):\n    eval_net.load_state_dict(target.state_dict())",
        (
            "for t in range(9):\n    target.load_state_dict(q.state_dict())\n"
            "    if bad:\n        q.load_state_dict(target.state_dict())"
        ),
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_a_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_ordinary_code_is_none(kind: str, text: str) -> None:
    assert kind not in kinds(text)


def test_each_pattern_has_twins() -> None:
    assert FOUND.keys() == NOT_FOUND.keys()
    assert all(len(texts) >= 3 for texts in (*FOUND.values(), *NOT_FOUND.values()))
