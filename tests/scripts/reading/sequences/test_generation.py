"""Generation by steps in sources: temperatures, contexts, beams, states and fed tokens."""

import pytest

from tests.scripts.reading.found import kinds

SAMPLE = """
def sample(model, ids, temperature=0.8):
    for _ in range(50):
        logits = model(ids[:, -block:])[:, -1]
        {}
        ids = torch.cat([ids, torch.multinomial(probs, 1)], dim=1)
    return ids
"""


@pytest.mark.parametrize(
    "line",
    [
        "probs = F.softmax(logits, dim=-1) / temperature",
        "probs = logits.softmax(-1)\n        probs = probs / temperature",
        "probs = torch.softmax(logits, -1)\n        probs /= temperature",
        "p = logits.softmax(-1)\n        probs = p / self.temperature",
    ],
)
def test_temperatures_after_the_softmax(line: str) -> None:
    assert kinds(SAMPLE.format(line)) == {"late temperature"}


@pytest.mark.parametrize(
    "line",
    [
        "probs = F.softmax(logits / temperature, dim=-1)",
        "probs = logits.softmax(-1) ** (1 / temperature)\n        probs = probs / probs.sum()",
        "logits = logits / temperature\n        probs = logits.softmax(-1)",
        "probs = logits.softmax(-1)\n        probs = probs / probs.sum(-1, keepdim=True)",
    ],
)
def test_temperatures_before_the_softmax(line: str) -> None:
    assert not kinds(SAMPLE.format(line))


GENERATE = """
def generate(model, ids):
    for i in range(100):
        {}
        new = logits[:, -1].argmax(-1, keepdim=True)
        {}
    return ids
"""
GROWN = "ids = torch.cat((ids, new), dim=1)"


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("logits = model(ids[:, :block_size])", GROWN),
        ("context = ids[:, :cfg.block]\n        logits, _ = model(context)", GROWN),
        ("logits = model(torch.tensor([ids[:max_len]]))", "ids.append(new.item())"),
        ("x = ids if ids.size(1) < 64 else ids[:, :64]\n        logits = model(x)", GROWN),
    ],
)
def test_contexts_of_the_oldest_tokens(first: str, last: str) -> None:
    assert kinds(GENERATE.format(first, last)) == {"oldest context"}


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("logits = model(ids[:, -block_size:])", GROWN),
        ("logits = model(ids[:, :i + 1])", GROWN),
        ("logits = model(torch.tensor([ids[-max_len:]]))", "ids.append(new.item())"),
        ("logits = model(prompt[:, :64], ids)", GROWN),
    ],
)
def test_contexts_of_the_newest_tokens(first: str, last: str) -> None:
    assert not kinds(GENERATE.format(first, last))


BEAM = """
def beam_search(decoder, h, width):
    beams = [([SOS], 0.0, h)]
    for _ in range(20):
        candidates = []
        for ids, score, h in beams:
            logits, h_new = decoder(ids[-1], h)
            {}
        beams = sorted(candidates, key=lambda c: c[1], reverse=True)[:width]
    return beams[0]
"""


@pytest.mark.parametrize(
    "body",
    [
        """p, tokens = logits.softmax(-1).topk(width)
            for v, k in zip(p.tolist(), tokens.tolist()):
                candidates.append((ids + [k], score + v, h_new))""",
        """probs = F.softmax(logits, dim=-1)
            values, tokens = torch.topk(probs, width)
            for i in range(width):
                candidates.append((ids + [tokens[i].item()], score + values[i].item(), h_new))""",
        """values, tokens = torch.softmax(logits, -1)[0].topk(width)
            for v, k in zip(values, tokens):
                total = v.item() + score
                candidates.append((ids + [k], total, h_new))""",
    ],
)
def test_beams_that_add_probabilities(body: str) -> None:
    assert kinds(BEAM.format(body)) == {"added probabilities"}


@pytest.mark.parametrize(
    "body",
    [
        """v, tokens = logits.log_softmax(-1).topk(width)
            for p, k in zip(v.tolist(), tokens.tolist()):
                candidates.append((ids + [k], score + p, h_new))""",
        """v, tokens = logits.softmax(-1).topk(width)
            for p, k in zip(v.tolist(), tokens.tolist()):
                candidates.append((ids + [k], score + math.log(p), h_new))""",
        """v, tokens = logits.softmax(-1).topk(width)
            for p, k in zip(v.tolist(), tokens.tolist()):
                candidates.append((ids + [k], score * p, h_new))""",
    ],
)
def test_beams_that_add_logarithms(body: str) -> None:
    assert not kinds(BEAM.format(body))


@pytest.mark.parametrize(
    "text",
    [
        BEAM.format("candidates.append((ids + [1], score, h))"),
        """
        def decode(decoder, token, hidden):
            for _ in range(20):
                logits, new_hidden = decoder(token, hidden)
                token = logits.argmax(-1)
        """,
        """
        def decode(cell, x, state):
            for t in range(x.size(1)):
                out, next_state = cell(x[:, t], state)
                outs.append(out)
        """,
        """
        def decode(cell, x, h, c):
            while not done:
                out, (h2, c2) = cell(x, (h, c))
                x = out.argmax(-1)
        """,
    ],
)
def test_states_that_are_not_handed_on(text: str) -> None:
    assert "stale state" in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        BEAM.format("candidates.append((ids + [1], score, h_new))"),
        """
        def decode(decoder, token, hidden):
            for _ in range(20):
                logits, new_hidden = decoder(token, hidden)
                token, hidden = logits.argmax(-1), new_hidden
        """,
        """
        for x, y in loader:
            out, state = model(x, initial)
            loss = criterion(out, y)
            loss.backward()
        """,
        """
        for obs, h in steps:
            q, h_next = net(obs, h)
            target = r + h_next.max()
        """,
    ],
)
def test_states_that_are_handed_on(text: str) -> None:
    assert "stale state" not in kinds(text)


FORCED = """
def train(decoder, h, tgt):
    token = {}
    loss = 0
    for t in range({}):
        logits, h = decoder(token, h)
        loss = loss + F.cross_entropy(logits, tgt[:, {}])
        {}
    return loss
"""


@pytest.mark.parametrize(
    ("first", "turns", "wanted", "last"),
    [
        ("tgt[:, 0]", "1, tgt.size(1)", "t",
         "token = tgt[:, t - 1] if random.random() < 0.5 else logits.argmax(1)"),
        ("tgt[:, 0]", "tgt.size(1) - 1", "t + 1", "token = tgt[:, t]"),
        ("tgt[:, 0]", "1, T", "t", "if force:\n            token = tgt[:, t - 1]"),
        ("tgt[:, 0]", "1, T", "t", "token = torch.where(use, tgt[:, t + 1], logits.argmax(1))"),
    ],
)  # fmt: skip
def test_tokens_that_lag_behind(first: str, turns: str, wanted: str, last: str) -> None:
    assert kinds(FORCED.format(first, turns, wanted, last)) == {"lagging token"}


@pytest.mark.parametrize(
    ("first", "turns", "wanted", "last"),
    [
        ("tgt[:, 0]", "1, tgt.size(1)", "t",
         "token = tgt[:, t] if random.random() < 0.5 else logits.argmax(1)"),
        ("tgt[:, 0]", "tgt.size(1) - 1", "t + 1", "token = tgt[:, t + 1]"),
        ("torch.full((B,), SOS)", "tgt.size(1)", "t", "token = tgt[:, t]"),
    ],
)  # fmt: skip
def test_tokens_that_are_fed_in_order(first: str, turns: str, wanted: str, last: str) -> None:
    assert not kinds(FORCED.format(first, turns, wanted, last))


STEPS = """
def train(decoder, token, h, tgt):
    outputs = []
    for t in range(1, tgt.size(1)):
        logits, h = decoder(token, h)
        outputs.append(logits)
        token = tgt[:, t]
    {}
"""


@pytest.mark.parametrize(
    "body",
    [
        """logits = torch.stack(outputs)
    return F.cross_entropy(logits.reshape(-1, V), tgt[:, 1:].reshape(-1))""",
        "return F.cross_entropy(torch.stack(outputs, 0).flatten(0, 1), tgt[:, 1:].flatten())",
        """gold = tgt[:, 1:].contiguous()
    return criterion(torch.cat(outputs, dim=0).view(-1, V), gold.view(-1))""",
    ],
)
def test_steps_that_are_stacked_along_time(body: str) -> None:
    assert kinds(STEPS.format(body)) == {"time-major steps"}


@pytest.mark.parametrize(
    "body",
    [
        "return F.cross_entropy(torch.stack(outputs, 1).flatten(0, 1), tgt[:, 1:].flatten())",
        "return F.cross_entropy(torch.stack(outputs).flatten(0, 1), tgt[:, 1:].t().flatten())",
        """logits = torch.stack(outputs).transpose(0, 1)
    return F.cross_entropy(logits.reshape(-1, V), tgt[:, 1:].reshape(-1))""",
    ],
)
def test_steps_that_are_stacked_like_their_targets(body: str) -> None:
    assert not kinds(STEPS.format(body))
